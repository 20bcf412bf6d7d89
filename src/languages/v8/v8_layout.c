// SPDX-License-Identifier: MIT
#include "v8_layout.h"

#include <elfutils/libdwfl.h>
#include <gelf.h>
#include <stddef.h>
#include <string.h>

#include "memory.h"

static const struct v8_layout layouts[V8_LAYOUTS] = {
    // Node 18
    {10, 2, 2065, 2081, 195, 257, 256, 170, 128, 24, 16, 32, 3, 0},
    // Node 20
    {11, 3, 2066, 2082, 191, 262, 261, 167, 128, 24, 16, 32, 3, 0},
    // Node 22
    {12, 4, 2066, 2082, 205, 274, 272, 167, 128, 32, 16, 32, 3, 0},
    // Node 24
    {13, 6, 2065, 2081, 186, 282, 280, 167, 128, 32, 24, 40, 5, 32},
};

// What a constant must be: as the member of the row, or as the value.
struct check {
	const char *name;
	size_t member;
	int32_t value;
};

#define NO_MEMBER SIZE_MAX
#define MEMBER(name, member)                                                                       \
	{                                                                                          \
		name, offsetof(struct v8_layout, member), 0                                        \
	}
#define VALUE(name, value)                                                                         \
	{                                                                                          \
		name, NO_MEMBER, value                                                             \
	}

static const char prefix[] = "v8dbg_";

// Without that prefix. A version has only some of them.
static const struct check checks[] = {
    VALUE("TaggedSize", 8), // pointers are not compressed
    VALUE("HeapObjectTag", 1),
    VALUE("HeapObjectTagMask", 3),
    VALUE("SmiTag", 0),
    VALUE("SmiShiftSize", 31),
    VALUE("StringTag", 0),
    VALUE("SeqStringTag", 0),
    VALUE("ConsStringTag", 1),
    VALUE("ExternalStringTag", 2),
    VALUE("SlicedStringTag", 3),
    VALUE("ThinStringTag", 5),
    VALUE("OneByteStringTag", 8),
    VALUE("class_Map__instance_type__uint16_t", V8_MAP_TYPE),
    VALUE("class_String__length__int32_t", V8_STRING_LENGTH),
    VALUE("class_SeqOneByteString__chars__char", V8_STRING_DATA),
    VALUE("class_SeqTwoByteString__chars__char", V8_STRING_DATA),
    VALUE("class_ConsString__first__String", V8_STRING_DATA),
    VALUE("class_SlicedString__parent__String", V8_STRING_DATA),
    VALUE("class_ThinString__actual__String", V8_STRING_DATA),
    VALUE("class_ConsString__second__String", V8_STRING_SECOND),
    VALUE("class_SlicedString__offset__SMI", V8_STRING_SECOND),
    VALUE("class_Script__source__Object", V8_SCRIPT_SOURCE),
    VALUE("class_Script__name__Object", V8_SCRIPT_NAME),
    VALUE("class_Script__line_ends__Object", V8_SCRIPT_ID - 8),
    MEMBER("type_JSFunction__JS_FUNCTION_TYPE", first_function),
    MEMBER("FirstJSFunctionType", first_function),
    MEMBER("LastJSFunctionType", last_function),
    MEMBER("type_BytecodeArray__BYTECODE_ARRAY_TYPE", bytecodes),
    MEMBER("type_SharedFunctionInfo__SHARED_FUNCTION_INFO_TYPE", shared),
    MEMBER("type_ScopeInfo__SCOPE_INFO_TYPE", scope),
    MEMBER("type_Script__SCRIPT_TYPE", script),
    MEMBER("FirstNonstringType", non_string),
    MEMBER("class_JSFunction__shared__SharedFunctionInfo", function_shared),
    MEMBER("class_SharedFunctionInfo__name_or_scope_info__Object", shared_name),
    MEMBER("class_SharedFunctionInfo__name_or_scope_info__Tagged_Object_", shared_name),
    MEMBER("class_SharedFunctionInfo__name_or_scope_info__Tagged_NameOrScopeInfoT_", shared_name),
    MEMBER("class_SharedFunctionInfo__script_or_debug_info__HeapObject", shared_script),
    MEMBER("class_SharedFunctionInfo__script__Tagged_HeapObject_", shared_script),
    MEMBER("scopeinfo_idx_first_vars", scope_first),
};

static const char major_name[] = "_ZN2v88internal7Version6major_E";
static const char minor_name[] = "_ZN2v88internal7Version6minor_E";

// The constants of a file.
struct constants {
	Elf *elf;
	int32_t values[array_size(checks)];
	bool has[array_size(checks)];
	size_t n;
	int32_t major, minor; // -1: not there
};

// Reads a constant of four bytes from the file; one that is 0 may take no place there.
static bool read_value(Elf *elf, const GElf_Sym *symbol, int32_t *ret)
{
	Elf_Scn *section = elf_getscn(elf, symbol->st_shndx);
	GElf_Shdr header;

	if (!section || !gelf_getshdr(section, &header) || symbol->st_value < header.sh_addr)
		return false;
	const uint64_t at = symbol->st_value - header.sh_addr;
	if (header.sh_type == SHT_NOBITS) {
		*ret = 0;
		return true;
	}
	const Elf_Data *data = elf_rawdata(section, NULL);
	if (!data || !data->d_buf || data->d_size < sizeof(*ret) ||
	    at > data->d_size - sizeof(*ret))
		return false;
	memcpy(ret, (const uint8_t *)data->d_buf + at, sizeof(*ret));
	return true;
}

static void note_symbol(struct constants *constants, const GElf_Sym *symbol, const char *name)
{
	const size_t length = sizeof(prefix) - 1;

	if (strcmp(name, major_name) == 0)
		read_value(constants->elf, symbol, &constants->major);
	else if (strcmp(name, minor_name) == 0)
		read_value(constants->elf, symbol, &constants->minor);
	if (strncmp(name, prefix, length) != 0)
		return;
	for (size_t i = 0; i < array_size(checks); i++) {
		if (constants->has[i] || strcmp(name + length, checks[i].name) != 0)
			continue;
		constants->has[i] = read_value(constants->elf, symbol, &constants->values[i]);
		constants->n += constants->has[i];
		return;
	}
}

static void read_symbols(struct constants *constants, Elf_Scn *section, const GElf_Shdr *header)
{
	Elf_Data *data = elf_getdata(section, NULL);
	const size_t n = data && header->sh_entsize ? data->d_size / header->sh_entsize : 0;
	GElf_Sym symbol;

	for (size_t i = 0; i < n; i++) {
		const char *name =
		    gelf_getsym(data, (int)i, &symbol) && GELF_ST_TYPE(symbol.st_info) == STT_OBJECT
		        ? elf_strptr(constants->elf, header->sh_link, symbol.st_name)
		        : NULL;
		if (name)
			note_symbol(constants, &symbol, name);
	}
}

static bool fits(const struct v8_layout *layout, const struct constants *constants)
{
	for (size_t i = 0; i < array_size(checks); i++) {
		const struct check *check = &checks[i];
		int32_t wanted = check->value;
		if (check->member != NO_MEMBER)
			memcpy(&wanted, (const uint8_t *)layout + check->member, sizeof(wanted));
		if (constants->has[i] && constants->values[i] != wanted)
			return false;
	}
	return layout->major == constants->major && layout->minor == constants->minor;
}

enum v8_layout_result v8_layout_find(Dwfl_Module *module, const struct v8_layout **ret,
                                     int *ret_major)
{
	const size_t most = array_size(checks) / 2; // any version has more of them
	GElf_Addr bias;
	GElf_Shdr header;
	struct constants constants = {.major = -1, .minor = -1};

	constants.elf = module ? dwfl_module_getelf(module, &bias) : NULL;
	for (Elf_Scn *section = NULL;
	     constants.elf && (section = elf_nextscn(constants.elf, section));)
		if (gelf_getshdr(section, &header) && header.sh_type == SHT_DYNSYM)
			read_symbols(&constants, section, &header);
	if (constants.n == 0 || constants.major < 0)
		return V8_LAYOUT_NONE;
	*ret_major = constants.major;
	for (size_t i = 0; i < array_size(layouts); i++)
		if (constants.n > most && fits(&layouts[i], &constants)) {
			*ret = &layouts[i];
			return V8_LAYOUT_KNOWN;
		}
	return V8_LAYOUT_UNKNOWN;
}

const struct v8_layout *v8_layout_of(size_t i)
{
	return &layouts[i];
}
