/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libjvm.so exports lists of its own fields and types for debuggers, with their names, and
 * variables that say how an entry of a list is laid out. inspect() finds the required entries by
 * their names. Offsets, sizes and the variables are read in the process, as many are set when the
 * library is loaded.
 */
#ifndef HOTSPOT_REQUIRED_H
#define HOTSPOT_REQUIRED_H

#include <stdbool.h>
#include <stdint.h>

enum required_kind {
	FIELD,    /* its offset */
	STATIC,   /* the address of a static field, in two words */
	SIZE,     /* of the type */
	CONSTANT, /* the value of the constant `type` */
	BYTES,    /* of the number that the field is: 2 or 4 */
	HANDLE,   /* 1 if the field has an OopHandle, 0 if it has the object's address */
};

/* What a word of a process is. */
struct required {
	const char *type, *field;
	uint8_t word, kind; /* enum hotspot_word, required_kind */
	uint8_t need;       /* enum required_need */
	uint8_t instead;    /* INSTEAD: of this word */
};

enum required_need {
	MUST,
	MAY,     /* be missing: the word is 0 then */
	INSTEAD, /* one of two words must be set */
};

#define REQUIRED 103u

extern const struct required hotspot_required[REQUIRED];

/* The layout of the lists, which every release has had. Offsets in an entry, and its size. */
enum {
	LAYOUT_FIELD_TYPE = 0,
	LAYOUT_FIELD_NAME = 8,
	LAYOUT_FIELD_TEXT = 16, /* the field's type */
	LAYOUT_FIELD_STATIC = 24,
	LAYOUT_FIELD_OFFSET = 32,
	LAYOUT_FIELD_ADDRESS = 40,
	LAYOUT_FIELD = 48,
	LAYOUT_TYPE_NAME = 0,
	LAYOUT_TYPE_SIZE = 32,
	LAYOUT_TYPE = 40,
	LAYOUT_CONSTANT_NAME = 0,
	LAYOUT_CONSTANT_VALUE = 8,
	LAYOUT_CONSTANT = 16,
};

#define LAYOUT_VARIABLES 13u

struct layout {
	const char *symbol;
	uint64_t value;
};

extern const struct layout hotspot_layout[LAYOUT_VARIABLES];

/* Words of the table of a library, all vaddrs: of the variables of the layout, then of the entries
 * that are required, then of JvmtiExport::_redefinition_count; 0: there is none. */
#define HOTSPOT_TABLE_REDEFINED (LAYOUT_VARIABLES + REQUIRED)
#define HOTSPOT_TABLE_WORDS (HOTSPOT_TABLE_REDEFINED + 1)

#endif
