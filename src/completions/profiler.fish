# Completion of profiler(1) for fish. What it offers is what --help-all says, of each verb.

# The verb of the command line, if it has one.
function __profiler_verb
    set -l words (commandline -opc)
    for word in $words[2..-1]
        string match -q -- '-*' $word; and continue
        profiler --help-all 2>/dev/null | string match -qr -- "^  $word [A-Z]"; and echo $word
        return
    end
end

function __profiler_verbs
    test -z (__profiler_verb)"" || return
    profiler --help-all 2>/dev/null |
        string replace -rf -- '^  ([a-z]+) [A-Z][A-Z| .]*  +(.*)$' '$1\t$2'
end

function __profiler_values
    switch $argv[1]
        case PID
            __fish_complete_pids
        case FORMAT
            printf '%s\n' folded pprof html record speedscope firefox chrome sentry
        case VIEW
            printf '%s\n' threads functions tree waits
        case DIR
            __fish_complete_directories (commandline -ct | string replace -r '^-[^=]*=' '')
        case COMMAND
            __fish_complete_command
        case 'FILE*'
            __fish_complete_path (commandline -ct | string replace -r '^-[^=]*=' '')
    end
end

function __profiler_options
    set -l token (commandline -ct)
    set -l help (profiler (__profiler_verb) --help-all 2>/dev/null)
    if set -l option (string match -r -- '^--([a-z0-9-]+)=' $token)
        set -l value (string replace -rf -- "^  .{4}--$option[2]=([^ ]+).*" '$1' $help)
        test -n "$value[1]"; and string replace -r -- '^' "$option[1]" (__profiler_values $value[1])
        return
    end
    string match -q -- '-*' $token; or return
    string replace -rf -- '^  .{4}(--[a-z0-9-]+=?)([^ ]*) *(.*)$' '$1\t$3' $help
end

complete -c profiler -f -a '(__profiler_verbs)'
complete -c profiler -f -a '(__profiler_options)'
complete -c profiler -n 'test -n (__profiler_verb)""' -F
complete -c profiler -n 'test -z (__profiler_verb)""' -a '(__fish_complete_command)'
