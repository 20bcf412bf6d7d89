# Completion of profiler(1) for bash. What it offers is what --help-all says, of each verb.

# Sets names, a line "-p --pid PID" for each option of the help.
_profiler_options()
{
	local line
	local pattern='^  (-(.), |    )--([a-z0-9-]+)(=([^ ]+))?'

	names=()
	while IFS= read -r line; do
		[[ $line =~ $pattern ]] || continue
		names+=("${BASH_REMATCH[2]:+-${BASH_REMATCH[2]}}|--${BASH_REMATCH[3]}|${BASH_REMATCH[5]}")
	done < <("$@" --help-all 2>/dev/null)
}

# Sets verbs, a line "dump PID" for each.
_profiler_verbs()
{
	local line
	local pattern='^  ([a-z]+) ([A-Z][A-Z| .]*)  '

	verbs=()
	while IFS= read -r line; do
		[[ $line =~ $pattern ]] && verbs+=("${BASH_REMATCH[1]} ${BASH_REMATCH[2]}")
	done < <("$1" --help-all 2>/dev/null)
}

# What the option takes: the value's name; nothing: it takes none.
_profiler_value_of()
{
	local name

	for name in "${names[@]}"; do
		IFS='|' read -r short long value <<<"$name"
		if [[ $1 == "$long" || (-n $short && $1 == "$short") ]]; then
			printf '%s' "$value"
			return
		fi
	done
}

_profiler_pids()
{
	local path

	for path in /proc/[0-9]*; do
		[[ -e $path/exe ]] && printf '%s\n' "${path#/proc/}"
	done
}

# Adds names of files (-f) or directories (-d), which may have spaces in them.
_profiler_offer_files()
{
	compopt -o filenames
	mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen "$1" -- "$2")
}

# Offers values of that name.
_profiler_offer_value()
{
	case $1 in
	PID) COMPREPLY=($(compgen -W "$(_profiler_pids)" -- "$2")) ;;
	FORMAT)
		COMPREPLY=($(compgen -W "folded pprof html record speedscope firefox chrome sentry" \
			-- "$2"))
		;;
	VIEW) COMPREPLY=($(compgen -W "threads functions tree waits" -- "$2")) ;;
	DIR) _profiler_offer_files -d "$2" ;;
	FILE*) _profiler_offer_files -f "$2" ;;
	COMMAND) COMPREPLY=($(compgen -c -- "$2")) ;;
	esac
}

_profiler()
{
	local command=$1 cur=$2 i word before="" verb="" operands="" names verbs short long value
	local IFS=$' \t\n'

	COMPREPLY=()
	_profiler_verbs "$command"
	_profiler_options "$command"
	# The verb, or the command, is the first word that is no option nor an option's value.
	for ((i = 1; i < COMP_CWORD; i++)); do
		word=${COMP_WORDS[i]}
		if [[ $before == -* && $word != "=" && -n $(_profiler_value_of "$before") ]] ||
			[[ $before == "=" || $word == "=" || ($word == -* && $word != "--") ]]; then
			before=$word
			[[ $before != -* && $before != "=" ]] && before=""
			continue
		fi
		for verb in "${verbs[@]}" ""; do
			[[ -n $verb && $word == "${verb%% *}" ]] && break
		done
		if [[ -z $verb ]]; then
			[[ $word == "--" ]] && ((i++))
			if ((i == COMP_CWORD)); then
				_profiler_offer_value COMMAND "$cur"
			elif declare -F _command_offset >/dev/null; then
				_command_offset "$i" # as that command's own completion has it
			else
				_profiler_offer_value FILE "$cur"
			fi
			return
		fi
		operands=${verb#* } verb=${verb%% *}
		_profiler_options "$command" "$verb"
		break
	done

	before=${COMP_WORDS[COMP_CWORD - 1]}
	[[ $cur == "=" ]] && cur=""
	[[ ${COMP_WORDS[COMP_CWORD]} == "=" ]] && before="=" && ((COMP_CWORD++))
	[[ $before == "=" ]] && before=${COMP_WORDS[COMP_CWORD - 2]}
	value=$(_profiler_value_of "$before")
	if [[ $before == -* && -n $value ]]; then
		_profiler_offer_value "$value" "$cur"
	elif [[ $cur == -* ]]; then
		for word in "${names[@]}"; do
			IFS='|' read -r short long value <<<"$word"
			[[ $long == "$cur"* ]] && COMPREPLY+=("$long${value:+=}")
		done
		[[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *= ]] && compopt -o nospace
	elif [[ -z $verb ]]; then
		COMPREPLY=($(compgen -W "${verbs[*]%% *}" -- "$cur") $(compgen -c -- "$cur"))
	else
		[[ $operands == *PID* ]] && _profiler_offer_value PID "$cur"
		_profiler_offer_files -f "$cur"
	fi
} 2>/dev/null

complete -F _profiler profiler
