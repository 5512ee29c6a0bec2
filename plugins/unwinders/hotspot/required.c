/* SPDX-License-Identifier: Apache-2.0 */
#include "required.h"

#include <stddef.h>

#include "words.h"

const struct layout hotspot_layout[LAYOUT_VARIABLES] = {
	{"gHotSpotVMStructEntryArrayStride", LAYOUT_FIELD},
	{"gHotSpotVMStructEntryTypeNameOffset", LAYOUT_FIELD_TYPE},
	{"gHotSpotVMStructEntryFieldNameOffset", LAYOUT_FIELD_NAME},
	{"gHotSpotVMStructEntryIsStaticOffset", LAYOUT_FIELD_STATIC},
	{"gHotSpotVMStructEntryOffsetOffset", LAYOUT_FIELD_OFFSET},
	{"gHotSpotVMStructEntryAddressOffset", LAYOUT_FIELD_ADDRESS},
	{"gHotSpotVMTypeEntryArrayStride", LAYOUT_TYPE},
	{"gHotSpotVMTypeEntryTypeNameOffset", LAYOUT_TYPE_NAME},
	{"gHotSpotVMTypeEntrySizeOffset", LAYOUT_TYPE_SIZE},
	{"gHotSpotVMIntConstantEntryArrayStride", LAYOUT_CONSTANT},
	{"gHotSpotVMIntConstantEntryNameOffset", LAYOUT_CONSTANT_NAME},
	{"gHotSpotVMIntConstantEntryValueOffset", LAYOUT_CONSTANT_VALUE},
};

const struct required hotspot_required[REQUIRED] = {
	{"CodeCache", "_heaps", HOTSPOT_HEAPS, STATIC, false},
	{"StubRoutines", "_call_stub_return_address", HOTSPOT_CALL_STUB, STATIC, false},
	{"GrowableArrayBase", "_len", HOTSPOT_ARRAY_LEN, FIELD, false},
	{"GrowableArray<int>", "_data", HOTSPOT_ARRAY_DATA, FIELD, false},
	{"CodeHeap", "_memory", HOTSPOT_HEAP_MEMORY, FIELD, false},
	{"CodeHeap", "_segmap", HOTSPOT_HEAP_SEGMAP, FIELD, false},
	{"CodeHeap", "_log2_segment_size", HOTSPOT_HEAP_LOG2, FIELD, false},
	{"VirtualSpace", "_low_boundary", HOTSPOT_SPACE_LOW, FIELD, false},
	{"VirtualSpace", "_high_boundary", HOTSPOT_SPACE_END, FIELD, false},
	{"HeapBlock::Header", "_length", HOTSPOT_BLOCK_LENGTH, FIELD, false},
	{"HeapBlock::Header", "_used", HOTSPOT_BLOCK_USED, FIELD, false},
	{"HeapBlock", NULL, HOTSPOT_BLOCK_SIZE, SIZE, false},
	{"CodeBlob", "_name", HOTSPOT_BLOB_NAME, FIELD, false},
	{"CodeBlob", "_code_begin", HOTSPOT_BLOB_CODE, FIELD, false},
	{"CodeBlob", "_frame_size", HOTSPOT_BLOB_FRAME_SIZE, FIELD, false},
	{"CodeBlob", "_frame_complete_offset", HOTSPOT_BLOB_FRAME_COMPLETE, FIELD, false},
	{"CompiledMethod", "_method", HOTSPOT_NMETHOD_METHOD, FIELD, false},
	{"nmethod", "_method", HOTSPOT_NMETHOD_METHOD, FIELD, false},
	{"nmethod", "_compile_id", HOTSPOT_NMETHOD_COMPILE_ID, FIELD, false},
	{"Method", "_constMethod", HOTSPOT_METHOD_CONST, FIELD, false},
	{"ConstMethod", "_constants", HOTSPOT_CONST_POOL, FIELD, false},
	{"ConstMethod", "_name_index", HOTSPOT_CONST_NAME, FIELD, false},
	{"ConstMethod", "_signature_index", HOTSPOT_CONST_SIGNATURE, FIELD, false},
	{"ConstMethod", "_code_size", HOTSPOT_CONST_CODE_SIZE, FIELD, false},
	{"ConstMethod", NULL, HOTSPOT_CONST_SIZE, SIZE, false},
	{"ConstantPool", "_pool_holder", HOTSPOT_POOL_HOLDER, FIELD, false},
	{"ConstantPool", "_source_file_name_index", HOTSPOT_POOL_FILE, FIELD, false},
	{"ConstantPool", NULL, HOTSPOT_POOL_SIZE, SIZE, false},
	{"Klass", "_name", HOTSPOT_KLASS_NAME, FIELD, false},
	{"Symbol", "_length", HOTSPOT_SYMBOL_LENGTH, FIELD, false},
	{"Symbol", "_body", HOTSPOT_SYMBOL_BODY, FIELD, false},
	{"Abstract_VM_Version", "_vm_major_version", HOTSPOT_VERSION, STATIC, false},
	/* to name inlined methods */
	{"CompiledMethod", "_scopes_data_begin", HOTSPOT_NMETHOD_SCOPES, FIELD, true},
	{"nmethod", "_scopes_pcs_offset", HOTSPOT_NMETHOD_PCS, FIELD, true},
	{"nmethod", "_dependencies_offset", HOTSPOT_NMETHOD_PCS_END, FIELD, true},
	{"nmethod", "_metadata_offset", HOTSPOT_NMETHOD_METADATA, FIELD, true},
	{"nmethod", "_orig_pc_offset", HOTSPOT_NMETHOD_ORIG_PC, FIELD, true},
	{"CompiledMethod", "_deopt_handler_begin", HOTSPOT_NMETHOD_DEOPT, FIELD, true},
	{"PcDesc", "_pc_offset", HOTSPOT_PC_OFFSET, FIELD, true},
	{"PcDesc", "_scope_decode_offset", HOTSPOT_PC_SCOPE, FIELD, true},
	{"PcDesc", NULL, HOTSPOT_PC_SIZE, SIZE, true},
	/* for lines; the name of 17, and that of 21 */
	{"ConstMethod", "_flags", HOTSPOT_CONST_FLAGS, FIELD, true},
	{"ConstMethod", "_flags._flags", HOTSPOT_CONST_FLAGS, FIELD, true},
	{"ConstMethod", "_constMethod_size", HOTSPOT_CONST_WORDS, FIELD, true},
	{"ConstMethod::_has_linenumber_table", NULL, HOTSPOT_HAS_LINES, CONSTANT, true},
	{"ConstMethodFlags::_misc_has_linenumber_table", NULL, HOTSPOT_HAS_LINES, CONSTANT, true},
};
