/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The table of one libjvm.so that inspect() makes and the step reads, the words of a process, and
 * what the step emits. */
#ifndef HOTSPOT_WORDS_H
#define HOTSPOT_WORDS_H

#define HOTSPOT_MOST_HEAPS 4 /* of code: JDK 9 and later have three, or one */

/* Of a heap, from HOTSPOT_FIRST_HEAP on. */
enum hotspot_heap_word {
	HOTSPOT_HEAP_LO, /* two words each */
	HOTSPOT_HEAP_HI = 2,
	HOTSPOT_HEAP_MAP = 4,
	HOTSPOT_HEAP_SHIFT = 6, /* log2 of a segment's bytes */
	HOTSPOT_HEAP_WORDS,
};

/* Words of a process, as its JVM's lists have them. Names without more are offsets of fields in
 * bytes, in the struct that they begin with. */
enum hotspot_word {
	/* addresses of static variables, two words each */
	HOTSPOT_CALL_STUB,    /* StubRoutines::_call_stub_return_address */
	HOTSPOT_VERSION = 2,  /* Abstract_VM_Version::_vm_major_version */
	HOTSPOT_HEAPS = 4,    /* CodeCache::_heaps */
	HOTSPOT_ONE_HEAP = 6, /* CodeCache::_heap, of 8 only */
	/* what packed numbers have too much in each byte: 1 from 20 on */
	HOTSPOT_EXCESS = 8,
	/* GrowableArray<> of heaps */
	HOTSPOT_ARRAY_LEN,
	HOTSPOT_ARRAY_DATA,
	/* CodeHeap, VirtualSpace, HeapBlock */
	HOTSPOT_HEAP_MEMORY,
	HOTSPOT_HEAP_SEGMAP,
	HOTSPOT_HEAP_LOG2,
	HOTSPOT_SPACE_LOW,
	HOTSPOT_SPACE_END, /* _high_boundary */
	HOTSPOT_BLOCK_LENGTH,
	HOTSPOT_BLOCK_USED,
	HOTSPOT_BLOCK_SIZE, /* sizeof(HeapBlock) */
	/* CodeBlob, nmethod */
	HOTSPOT_BLOB_NAME,
	HOTSPOT_BLOB_CODE,        /* _code_begin, an address; 0: */
	HOTSPOT_BLOB_CODE_OFFSET, /* from the blob on */
	HOTSPOT_BLOB_FRAME_SIZE,
	HOTSPOT_BLOB_FRAME_COMPLETE,
	HOTSPOT_COMPLETE_BYTES, /* of that number */
	HOTSPOT_NMETHOD_METHOD,
	HOTSPOT_NMETHOD_COMPILE_ID,
	/* nmethod, PcDesc: 0 in JVMs that describe inlined methods otherwise. Offsets are from
	 * the blob on, in JVMs with _immutable_data from there on. */
	HOTSPOT_NMETHOD_IMMUTABLE,
	HOTSPOT_NMETHOD_SCOPES, /* _scopes_data_begin, an address; 0: */
	HOTSPOT_NMETHOD_SCOPES_OFFSET,
	HOTSPOT_NMETHOD_PCS,
	HOTSPOT_NMETHOD_PCS_END, /* 0: the scopes follow */
	/* from the blob on; if that number has 2 bytes, from its data on; 0: behind the
	 * relocations in its mutable data */
	HOTSPOT_NMETHOD_METADATA,
	HOTSPOT_METADATA_BYTES,
	HOTSPOT_BLOB_DATA,
	HOTSPOT_BLOB_MUTABLE,
	HOTSPOT_BLOB_RELOCATIONS, /* their bytes */
	HOTSPOT_NMETHOD_ORIG_PC,
	HOTSPOT_NMETHOD_DEOPT, /* an address; 0: */
	HOTSPOT_NMETHOD_DEOPT_OFFSET,
	HOTSPOT_PC_OFFSET,
	HOTSPOT_PC_SCOPE,
	HOTSPOT_PC_SIZE, /* sizeof(PcDesc) */
	/* Method, ConstMethod, ConstantPool, Klass, Symbol */
	HOTSPOT_METHOD_CONST,
	HOTSPOT_CONST_POOL,
	HOTSPOT_CONST_NAME,
	HOTSPOT_CONST_SIGNATURE,
	HOTSPOT_CONST_CODE_SIZE,
	HOTSPOT_CONST_SIZE, /* sizeof(ConstMethod): the bytecodes begin there */
	HOTSPOT_CONST_FLAGS,
	HOTSPOT_CONST_WORDS, /* _constMethod_size */
	HOTSPOT_HAS_LINES,   /* the flag of methods with a table of lines */
	HOTSPOT_POOL_HOLDER,
	HOTSPOT_POOL_FILE,  /* _source_file_name_index; 0: */
	HOTSPOT_CLASS_FILE, /* that of the class */
	HOTSPOT_POOL_SIZE,  /* sizeof(ConstantPool): its slots begin there */
	HOTSPOT_KLASS_NAME,
	HOTSPOT_SYMBOL_LENGTH,
	HOTSPOT_SYMBOL_BODY,
	/* What finds the words below: InstanceKlass, Klass, Array<>, numbers of flags of fields,
	 * and addresses of static variables. */
	HOTSPOT_CLASS_POOL,
	HOTSPOT_CLASS_FIELDS, /* _fieldinfo_stream */
	HOTSPOT_KLASS_LAYOUT,
	HOTSPOT_BYTES_DATA,
	HOTSPOT_FIELD_INITIALIZED,
	HOTSPOT_FIELD_GENERIC,
	HOTSPOT_FIELD_CONTENDED,
	HOTSPOT_CLASSES, /* vmClasses::_klasses */
	HOTSPOT_OOPS_BASE = HOTSPOT_CLASSES + 2,
	HOTSPOT_OOPS_SHIFT = HOTSPOT_OOPS_BASE + 2,
	HOTSPOT_CLASSES_BASE = HOTSPOT_OOPS_SHIFT + 2,
	HOTSPOT_CLASSES_SHIFT = HOTSPOT_CLASSES_BASE + 2,
	/* jdk.internal.vm.Continuation and StackChunk: frames in Java's heap. See chunks.c */
	HOTSPOT_CONTINUATION_TAIL = HOTSPOT_CLASSES_SHIFT + 2,
	HOTSPOT_CHUNK_PARENT,
	HOTSPOT_CHUNK_SIZE,
	HOTSPOT_CHUNK_SP,
	HOTSPOT_CHUNK_BOTTOM,    /* 0: */
	HOTSPOT_CHUNK_ARGUMENTS, /* words behind the bottom */
	HOTSPOT_CHUNK_STACK,     /* where its stack begins; 0: nothing of these is known */
	HOTSPOT_CHUNK_CLASS,     /* in its header */
	HOTSPOT_OOP_BASE,        /* of objects, in two words */
	HOTSPOT_OOP_SHIFT = HOTSPOT_OOP_BASE + 2,
	/* What finds the words below: addresses of static variables, the fields of classes up to
	 * JDK 20, which are arrays of numbers, and ZGC's. */
	HOTSPOT_THREAD_CLASS,
	HOTSPOT_STRING_CLASS = HOTSPOT_THREAD_CLASS + 2,
	HOTSPOT_COLLECTED_HEAP = HOTSPOT_STRING_CLASS + 2,
	HOTSPOT_ZGC = HOTSPOT_COLLECTED_HEAP + 2, /* two addresses: 21 has two of this kind */
	HOTSPOT_OLD_ZGC = HOTSPOT_ZGC + 2,
	HOTSPOT_ZGC_MASK = HOTSPOT_OLD_ZGC + 2, /* offsets of pointers to what is not 0 with ZGC */
	HOTSPOT_OLD_ZGC_MASK,
	HOTSPOT_HEAP_MOVES, /* CollectedHeap::_is_gc_active */
	HOTSPOT_CLASS_OLD_FIELDS,
	HOTSPOT_CLASS_NFIELDS, /* those of Java; the others come last */
	HOTSPOT_SHORTS_DATA,
	HOTSPOT_OLD_FIELD, /* numbers of a field, and which they are */
	HOTSPOT_OLD_FIELD_NAME,
	HOTSPOT_OLD_FIELD_TYPE,
	HOTSPOT_OLD_FIELD_LOW,
	HOTSPOT_OLD_FIELD_HIGH,
	HOTSPOT_OLD_FIELD_TAG, /* bits below the offset */
	/* JavaThread, java.lang.Thread, java.lang.String: names of threads. See thread.h */
	HOTSPOT_THREAD_OBJECT, /* _threadObj */
	HOTSPOT_THREAD_HANDLE, /* 1: that is the address of the object's address */
	HOTSPOT_THREAD_EETOP,  /* 0: nothing of these is known */
	HOTSPOT_THREAD_NAME,
	HOTSPOT_STRING_VALUE,
	HOTSPOT_STRING_CODER, /* 0: all have two bytes for each character */
	HOTSPOT_TEXT_LENGTH,  /* of the array */
	HOTSPOT_TEXT_BYTES,
	HOTSPOT_NARROW,    /* 1: addresses of objects in objects have 4 bytes */
	HOTSPOT_IS_MOVING, /* where a byte is 1 while the collector moves objects, in two words */
	/* Addresses of what tells that a class was unloaded or redefined, in two words each; 0: it
	 * is not known. See unloads.c */
	HOTSPOT_PERF_MEMORY = HOTSPOT_IS_MOVING + 2,    /* PerfMemory::_prologue */
	HOTSPOT_MAY_REDEFINE = HOTSPOT_PERF_MEMORY + 2, /* a byte, 0: agents cannot */
	HOTSPOT_REDEFINED = HOTSPOT_MAY_REDEFINE + 2,   /* how often; 0: that byte tells */
	HOTSPOT_UNLOADED = HOTSPOT_REDEFINED + 2,       /* how many classes */
	HOTSPOT_FIELD_WORDS = HOTSPOT_UNLOADED + 2,
	/* the heaps of code */
	HOTSPOT_NHEAPS = HOTSPOT_FIELD_WORDS,
	HOTSPOT_FIRST_HEAP,
	HOTSPOT_WORDS = HOTSPOT_FIRST_HEAP + HOTSPOT_MOST_HEAPS * HOTSPOT_HEAP_WORDS,
};

/* Kinds of emissions. */
enum hotspot_kind { HOTSPOT_METHOD = 1, HOTSPOT_PLACE, HOTSPOT_STUB, HOTSPOT_THREAD };

#define HOTSPOT_CLASS_BYTES 511u /* powers of two less one: the most that is emitted */
#define HOTSPOT_NAME_BYTES 255u
#define HOTSPOT_SIGNATURE_BYTES 255u
#define HOTSPOT_FILE_BYTES 127u
#define HOTSPOT_LINE_BYTES 511u

/* A method; the bytes of its four texts follow, without ends, and its packed table of lines, which
 * ends with a 0 if it is complete. */
struct hotspot_method {
	unsigned short class_bytes, name_bytes, signature_bytes, file_bytes, line_bytes, pad;
};

#define HOTSPOT_THREAD_BYTES 248u /* of a thread's name, at most */

/* A thread's name; its bytes follow, a character of Latin-1 each or UTF-16. */
struct hotspot_thread {
	unsigned int wide, pad; /* wide: 1: UTF-16 */
};

/* Of a frame of compiled code: the method that is executed, and where. */
struct hotspot_scope {
	unsigned long long method; /* its key */
	unsigned int bci;          /* HOTSPOT_NO_BCI: not known */
	unsigned int pad;
};
#define HOTSPOT_NO_BCI 0xffffffffu
#define HOTSPOT_SCOPES 32 /* of one place: a method and those that it was inlined into */

/* The second word of a pushed frame: what the first is, and where in it. */
#define HOTSPOT_IS_PLACE (1ull << 32)  /* of a compiled method; the offset of pc in its code */
#define HOTSPOT_IS_STUB (2ull << 32)   /* a stub */
#define HOTSPOT_IS_WORK (4ull << 32)   /* what a thread of the JVM's own does; enum hotspot_work */
#define HOTSPOT_IS_THREAD (8ull << 32) /* a thread's name, with FUSEE_PUSH_THREAD */
/* otherwise of an interpreted method, with its bci */

/* u->claim_arg of functions of libjvm.so, see threads.h; 0: code that the JVM has made. */
enum hotspot_work { HOTSPOT_GC = 1, HOTSPOT_COMPILER, HOTSPOT_VM };

#define HOTSPOT_STUB_BYTES 63u /* of a stub's name */

/* Stubs that the step names itself. */
enum hotspot_own_stub { HOTSPOT_NAMED = 0, HOTSPOT_CALLS_JAVA, HOTSPOT_IN_HEAP, HOTSPOT_REPLACES };

enum hotspot_reason {
	HOTSPOT_NO_CODE = 1,
	HOTSPOT_UNREADABLE,
	HOTSPOT_NO_FRAME,
	HOTSPOT_NO_INTERPRETED,
};
#define HOTSPOT_REASONS                                                           \
	{                                                                         \
		"no code of the JVM at this address", "frame of Java unreadable", \
			"frame of compiled Java code not found",                  \
			"interpreted frame of Java not found", (void *)0          \
	}

#endif
