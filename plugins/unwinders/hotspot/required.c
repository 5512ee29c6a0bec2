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
};

const struct required hotspot_required[REQUIRED] = {
	{"CodeCache", "_heaps", HOTSPOT_HEAPS, true},
	{"StubRoutines", "_call_stub_return_address", HOTSPOT_CALL_STUB, true},
	{"GrowableArrayBase", "_len", HOTSPOT_ARRAY_LEN, false},
	{"GrowableArray<int>", "_data", HOTSPOT_ARRAY_DATA, false},
	{"CodeHeap", "_memory", HOTSPOT_HEAP_MEMORY, false},
	{"CodeHeap", "_segmap", HOTSPOT_HEAP_SEGMAP, false},
	{"CodeHeap", "_log2_segment_size", HOTSPOT_HEAP_LOG2, false},
	{"VirtualSpace", "_low_boundary", HOTSPOT_SPACE_LOW, false},
	{"VirtualSpace", "_high_boundary", HOTSPOT_SPACE_END, false},
	{"HeapBlock::Header", "_length", HOTSPOT_BLOCK_LENGTH, false},
	{"HeapBlock::Header", "_used", HOTSPOT_BLOCK_USED, false},
	{"HeapBlock", NULL, HOTSPOT_BLOCK_SIZE, false},
	{"CodeBlob", "_name", HOTSPOT_BLOB_NAME, false},
	{"CodeBlob", "_code_begin", HOTSPOT_BLOB_CODE, false},
	{"CodeBlob", "_frame_size", HOTSPOT_BLOB_FRAME_SIZE, false},
	{"CodeBlob", "_frame_complete_offset", HOTSPOT_BLOB_FRAME_COMPLETE, false},
	{"CompiledMethod", "_method", HOTSPOT_NMETHOD_METHOD, false},
	{"nmethod", "_method", HOTSPOT_NMETHOD_METHOD, false},
	{"nmethod", "_compile_id", HOTSPOT_NMETHOD_COMPILE_ID, false},
	{"Method", "_constMethod", HOTSPOT_METHOD_CONST, false},
	{"ConstMethod", "_constants", HOTSPOT_CONST_POOL, false},
	{"ConstMethod", "_name_index", HOTSPOT_CONST_NAME, false},
	{"ConstMethod", "_signature_index", HOTSPOT_CONST_SIGNATURE, false},
	{"ConstMethod", "_code_size", HOTSPOT_CONST_CODE_SIZE, false},
	{"ConstMethod", NULL, HOTSPOT_CONST_SIZE, false},
	{"ConstantPool", "_pool_holder", HOTSPOT_POOL_HOLDER, false},
	{"ConstantPool", "_source_file_name_index", HOTSPOT_POOL_FILE, false},
	{"ConstantPool", NULL, HOTSPOT_POOL_SIZE, false},
	{"Klass", "_name", HOTSPOT_KLASS_NAME, false},
	{"Symbol", "_length", HOTSPOT_SYMBOL_LENGTH, false},
	{"Symbol", "_body", HOTSPOT_SYMBOL_BODY, false},
};
