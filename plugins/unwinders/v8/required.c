/* SPDX-License-Identifier: Apache-2.0 */
#include "required.h"

#include <stddef.h>

const struct v8_required v8_required[V8_REQUIRED] = {
	{V8_FIRST_FUNCTION, {"FirstJSFunctionType", "type_JSFunction__JS_FUNCTION_TYPE"}},
	{V8_TYPE_SHARED, {"type_SharedFunctionInfo__SHARED_FUNCTION_INFO_TYPE"}},
	{V8_TYPE_SCOPE, {"type_ScopeInfo__SCOPE_INFO_TYPE"}},
	{V8_TYPE_SCRIPT, {"type_Script__SCRIPT_TYPE"}},
	{V8_TYPE_BYTECODE, {"type_BytecodeArray__BYTECODE_ARRAY_TYPE"}},
	{V8_TYPE_TABLE,
	 {"type_TrustedByteArray__TRUSTED_BYTE_ARRAY_TYPE", "type_ByteArray__BYTE_ARRAY_TYPE"}},
	{V8_FIRST_NONSTRING, {"FirstNonstringType"}},
	{V8_SHAPE_MASK, {"StringRepresentationMask"}},
	{V8_ONE_BYTE, {"OneByteStringTag"}},
	{V8_CONS, {"ConsStringTag"}},
	{V8_EXTERNAL, {"ExternalStringTag"}},
	{V8_SLICED, {"SlicedStringTag"}},
	{V8_THIN, {"ThinStringTag"}},
	{V8_MAP_TYPE, {"class_Map__instance_type__uint16_t"}},
	{V8_FUNCTION_SHARED, {"class_JSFunction__shared__SharedFunctionInfo"}},
	{V8_SHARED_NAME,
	 {"class_SharedFunctionInfo__name_or_scope_info__Tagged_NameOrScopeInfoT_",
	  "class_SharedFunctionInfo__name_or_scope_info__Tagged_Object_",
	  "class_SharedFunctionInfo__name_or_scope_info__Object"}},
	{V8_SHARED_SCRIPT,
	 {"class_SharedFunctionInfo__script__Tagged_HeapObject_",
	  "class_SharedFunctionInfo__script_or_debug_info__HeapObject"}},
	{V8_SHARED_LENGTH, {"class_SharedFunctionInfo__length__uint16_t"}},
	{V8_SCRIPT_SOURCE, {"class_Script__source__Object"}},
	{V8_SCRIPT_NAME, {"class_Script__name__Object"}},
	{V8_SCRIPT_LINE_ENDS, {"class_Script__line_ends__Object"}},
	{V8_STRING_LENGTH, {"class_String__length__int32_t"}},
	{V8_STRING_CHARS, {"class_SeqOneByteString__chars__char"}},
	{V8_CONS_FIRST, {"class_ConsString__first__String"}},
	{V8_CONS_SECOND, {"class_ConsString__second__String"}},
	{V8_SLICED_PARENT, {"class_SlicedString__parent__String"}},
	{V8_SLICED_OFFSET, {"class_SlicedString__offset__SMI"}},
	{V8_THIN_ACTUAL, {"class_ThinString__actual__String"}},
	{V8_EXTERNAL_RESOURCE, {"class_ExternalString__resource__Object"}},
	{V8_SCOPE_LOCALS, {"scopeinfo_idx_ncontextlocals"}},
	{V8_SCOPE_FIRST, {"scopeinfo_idx_first_vars"}},
	{V8_BYTECODE_LENGTH,
	 {"class_BytecodeArray__length__SMI", "class_FixedArrayBase__length__SMI"}},
	{V8_BYTECODE_DATA, {"class_BytecodeArray__data__uintptr_t"}},
	{V8_LAST_FUNCTION, {"LastJSFunctionType", "type_JSFunction__JS_FUNCTION_TYPE"}},
};

/* What V8 11 and later have in common; then what differs. */
#define WITH_STREAMS(...)                                                                         \
	{                                                                                         \
		{V8_TYPE_CODE, "type_Code__CODE_TYPE", 0},                                        \
			{V8_TYPE_STREAM, "type_InstructionStream__INSTRUCTION_STREAM_TYPE", 0},   \
			{V8_STREAM_HEAD, "class_InstructionStream__instruction_start__uintptr_t", \
			 0},                                                                      \
			{V8_STREAM_CODE, NULL, 8},                                                \
			{V8_DEOPT_COUNT, "DeoptimizationDataInlinedFunctionCountIndex", 0},       \
			{V8_DEOPT_LITERALS, "DeoptimizationDataLiteralArrayIndex", 0},            \
			{V8_DEOPT_PLACES, "DeoptimizationDataInliningPositionsIndex", 0},         \
			__VA_ARGS__                                                               \
	}

#define SHARED "DeoptimizationDataSharedFunctionInfoIndex"
#define WRAPPED "DeoptimizationDataWrappedSharedFunctionInfoIndex"
#define WRAPPER "class_SharedFunctionInfoWrapper__shared_info__Tagged_SharedFunctionInfo_"

const struct v8_code_word v8_code_words[V8_LAYOUTS][V8_CODE_WORDS] = {
	/* V8 13 */
	WITH_STREAMS({V8_DEOPT_SHARED, WRAPPED, 0}, {V8_WRAPPED_SHARED, WRAPPER, 0},
		     {V8_CODE_START, "class_Code__instruction_start__Address", 0},
		     {V8_CODE_SIZE, "class_Code__instruction_size__int", 0},
		     {V8_CODE_DATA, NULL, 8}, {V8_CODE_POSITIONS, NULL, 16}),
	/* V8 12 */
	WITH_STREAMS({V8_DEOPT_SHARED, SHARED, 0}, {V8_WRAPPED_SHARED, NULL, 0},
		     {V8_CODE_START, "class_Code__instruction_start__Address", 0},
		     {V8_CODE_SIZE, "class_Code__instruction_size__int", 0},
		     {V8_CODE_DATA, NULL, 8}, {V8_CODE_POSITIONS, NULL, 16}),
	/* V8 11: behind the positions are the stream, the address of the instructions, 8 bytes of
	   flags and the size */
	WITH_STREAMS({V8_DEOPT_SHARED, SHARED, 0}, {V8_WRAPPED_SHARED, NULL, 0},
		     {V8_CODE_START, NULL, 40}, {V8_CODE_SIZE, NULL, 56},
		     {V8_CODE_DATA, "class_Code__deoptimization_data__FixedArray", 0},
		     {V8_CODE_POSITIONS, "class_Code__source_position_table__ByteArray", 0}),
	/* V8 10: the instructions are in the Code, and nothing says how data for deoptimization is
	   laid out: as in V8 11, by the types in it */
	{{V8_TYPE_CODE, "type_Code__CODE_TYPE", 0},
	 {V8_TYPE_STREAM, "type_Code__CODE_TYPE", 0},
	 {V8_STREAM_HEAD, "class_Code__instruction_start__uintptr_t", 0},
	 {V8_STREAM_CODE, NULL, 0},
	 {V8_DEOPT_COUNT, NULL, 1},
	 {V8_DEOPT_LITERALS, NULL, 2},
	 {V8_DEOPT_PLACES, NULL, 7},
	 {V8_DEOPT_SHARED, NULL, 6},
	 {V8_WRAPPED_SHARED, NULL, 0},
	 {V8_CODE_START, NULL, 0},
	 {V8_CODE_SIZE, "class_Code__instruction_size__int", 0},
	 {V8_CODE_DATA, NULL, 16},
	 {V8_CODE_POSITIONS, NULL, 24}},
};

const struct v8_granted v8_granted[V8_GRANTED] = {
	{"HeapObjectTag", 1},
	{"HeapObjectTagMask", 3},
	{"SmiValueShift", 1},
	{"SmiShiftSize", 31},
	{"off_fp_function", -16},
	{"off_fp_bytecode_array", -32},
	{"off_fp_bytecode_offset", -40},
};

const struct v8_required v8_wasm_words[V8_WASM_WORDS] = {
	{V8_WASM_MARKER, {"frametype_WasmFrame"}},
	{V8_TO_JS_MARKER, {"frametype_WasmToJsFrame"}},
	{V8_TO_WASM_MARKER, {"frametype_JsToWasmFrame"}},
	{V8_TYPE_MODULE, {"type_WasmModuleObject__WASM_MODULE_OBJECT_TYPE"}},
	{V8_SCRIPT_MODULE,
	 {"class_Script__wasm_managed_native_module__Tagged_Object_",
	  "class_Script__wasm_managed_native_module__Object"}},
};
