/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Reads the name of a method, block or C function from the VM's objects, and emits it. */
#ifndef RUBY_NAMES_H
#define RUBY_NAMES_H

#include "lines.h"
#include "near.h"

#define T_CLASS 2
#define T_MODULE 3
#define T_STRING 5
#define T_ARRAY 7
#define ISEQ_TYPE_METHOD 1
#define FLAG(n) (1ull << (12 + (n))) /* FL_USERn */
#define IS_SINGLETON FLAG(0)         /* of a class */

/* Copies a String to dst, which has room for cap bytes, a power of two or 3/4 of one. The bytes; 0:
 * it cannot be read. */
FUSEE_FN __u32 text(struct fusee_unwind *u, char *dst, __u32 cap, __u64 string)
{
	__u32 embed = word(u, RUBY_STRING_EMBED), n;
	__u64 s[4], at, length; /* flags, class, length, characters or their address */

	if (!string || string & 7 || AT(u, &s, string) || (s[0] & 31) != T_STRING)
		return 0;
	if (s[0] & FLAG(1)) {
		length = s[2];
		at = s[3];
	} else {
		length = embed == 16 ? s[0] >> 14 & 31 : s[2];
		at = string + embed;
	}
	n = length > cap ? cap : (__u32)length;
	__asm__ volatile("" : "+r"(n));
	n &= 1023;
	if (n > cap || !n || fusee_read(u, dst, n, at))
		return 0;
	return n;
}

/* Bytes of a String; 0: it cannot be read. */
FUSEE_FN __u32 length_of(struct fusee_unwind *u, __u64 string)
{
	__u64 s[3];

	if (!string || string & 7 || AT(u, &s, string) || (s[0] & 31) != T_STRING)
		return 0;
	if (!(s[0] & FLAG(1)) && word(u, RUBY_STRING_EMBED) == 16)
		return s[0] >> 14 & 31;
	return s[2] < 65536 ? (__u32)s[2] : 0;
}

/* Whether it is a String without characters. 0 also if it cannot be read. */
FUSEE_FN int is_empty(struct fusee_unwind *u, __u64 string)
{
	__u64 s[3];

	if (!string || string & 7 || AT(u, &s, string) || (s[0] & 31) != T_STRING)
		return 0;
	return s[0] & FLAG(1) || word(u, RUBY_STRING_EMBED) != 16 ? !s[2] : !(s[0] >> 14 & 31);
}

/* Word i of an Array. 0: there is none. */
FUSEE_FN __u64 element(struct fusee_unwind *u, __u64 array, __u64 i)
{
	__u64 a[5], v; /* flags, class, length or word 0, .., address */

	if (!array || array & 7 || AT(u, &a, array) || (a[0] & 31) != T_ARRAY)
		return 0;
	if (a[0] & FLAG(1))
		return i < (a[0] >> 15 & (word(u, RUBY_STRING_EMBED) == 16 ? 3 : 127)) &&
				       !AT(u, &v, array + 16 + 8 * i)
			       ? v
			       : 0;
	return i < a[2] && !AT(u, &v, a[4] + 8 * i) ? v : 0;
}

#define SYMBOLS_IDS 16   /* offset of the Array of Arrays of all symbols */
#define SYMBOLS_UNIT 512 /* symbols of one of them, with two words each */
#define ID_SCOPE_SHIFT 4

/* The String of a method's ID. 0: not found. */
FUSEE_FN __u64 name_of(struct fusee_unwind *u, __u64 id)
{
	__u64 at = address(u, RUBY_SYMBOLS), ids, number = id;

	if (!at || AT(u, &ids, u->bias + at + SYMBOLS_IDS))
		return 0;
	if (id > word(u, RUBY_LAST_OPERATOR))
		number = id >> ID_SCOPE_SHIFT;
	ids = element(u, ids, number / SYMBOLS_UNIT);
	return element(u, ids, number % SYMBOLS_UNIT * 2);
}

/* ---- names of classes ---- */

#define VARIABLES 24 /* of a class, in which what it is called and belongs to is searched */

/* The variables of a class: an st_table with entries {hash, ID, value} (to 3.1), or values (3.2).
 */
struct variables {
	__u64 at, n;
};

#define CLASS_EXTENSION 24 /* to 3.1, offset in a class of the address of its extension */
#define CLASS_TABLE 8      /* .. and in that of its table */
#define CLASS_VALUES 32    /* 3.2: offset in a class of the address of its values */

FUSEE_FN int variables_of(struct fusee_unwind *u, __u64 class, struct variables *v)
{
	__u64 at, table[7]; /* table: 4: where its entries begin, 5: end, 6: are */

	if (word(u, RUBY_CLASS_BY) == RUBY_CLASS_BY_SHAPE) {
		v->n = VARIABLES;
		return AT(u, &v->at, class + CLASS_VALUES);
	}
	if (AT(u, &at, class + CLASS_EXTENSION) || AT(u, &at, at + CLASS_TABLE) ||
	    AT(u, &table, at))
		return -1;
	v->at = table[6] + 24 * table[4];
	v->n = table[5] - table[4];
	return 0;
}

/* 1: the ID is that of __classpath__, under which a class has its name to 3.2. */
static int is_classpath(struct fusee_unwind *u, __u32 id)
{
	__u64 name[2] = {0};

	return text(u, (char *)name, 16, name_of(u, id)) == 13 && name[0] == 0x707373616c635f5f &&
	       name[1] == 0x5f5f687461;
}
FUSEE_PART(fusee_ruby_is_classpath, is_classpath)

/* struct rb_shape of 3.2: it adds a variable to its parent's. */
struct shape {
	__u64 edges, name;
	__u32 variables, capacity, type, parent;
};
#define SHAPE_VARIABLE 1

/* 3.2: the shape of a class says where in its values its name is. The String; 0: not found. */
FUSEE_FN __u64 path_by_shape(struct fusee_unwind *u, __u64 class)
{
	__u64 flags, shapes, values, path;
	struct shape s;
	__u32 id;

	if (AT(u, &flags, class) || AT(u, &values, class + CLASS_VALUES) ||
	    AT(u, &shapes, u->bias + address(u, RUBY_VM)) ||
	    AT(u, &shapes, shapes + word(u, RUBY_VM_SHAPES)))
		return 0;
	id = (__u32)(flags >> 32);
	for (int i = 0; i < VARIABLES; i++) {
		if (!id || AT(u, &s, shapes + (__u64)id * sizeof(s)))
			return 0;
		if ((s.type & 255) == SHAPE_VARIABLE && s.variables &&
		    FUSEE_CALL(fusee_ruby_is_classpath, u, (__u32)s.name) == 1)
			return AT(u, &path, values + 8ull * (s.variables - 1)) ? 0 : path;
		id = s.parent;
	}
	return 0;
}

/* To 3.1: the same. */
FUSEE_FN __u64 path_by_table(struct fusee_unwind *u, __u64 class)
{
	struct variables v;
	__u64 entry[3], flags;

	if (variables_of(u, class, &v))
		return 0;
	for (__u32 i = 0; i < VARIABLES && i < v.n; i++) {
		if (AT(u, &entry, v.at + 24ull * i))
			return 0;
		if (entry[2] & 7 || AT(u, &flags, entry[2]) || (flags & 31) != T_STRING ||
		    FUSEE_CALL(fusee_ruby_is_classpath, u, (__u32)entry[1]) != 1)
			continue;
		return entry[2];
	}
	return 0;
}

#define CLASS_ATTACHED 128  /* 3.3: offsets in a class: of a singleton class, its object */
#define CLASS_PERMANENT 149 /* bit 0: it is named by a constant */
#define CLASS_PATH 152

/* OWNER, a class, becomes the String of its name; 0: it has none. */
static int find_path(struct fusee_unwind *u, __u32 unused)
{
	__u64 class = u->scratch[OWNER], path = 0;
	__u32 by = word(u, RUBY_CLASS_BY);
	__u8 permanent;

	(void)unused;
	if (by == RUBY_CLASS_BY_SHAPE)
		path = path_by_shape(u, class);
	else if (by == RUBY_CLASS_BY_TABLE)
		path = path_by_table(u, class);
	else if (AT(u, &permanent, class + CLASS_PERMANENT) || !(permanent & 1) ||
		 AT(u, &path, class + CLASS_PATH))
		path = 0;
	u->scratch[OWNER] = path;
	return 0;
}
FUSEE_PART(fusee_ruby_find_path, find_path)

/* The class or module whose methods of its own OWNER, a singleton class, has: its class is OWNER.
 * 0: not found. */
static int find_attached(struct fusee_unwind *u, __u32 unused)
{
	__u64 class = u->scratch[OWNER], value, o[2];
	__u32 by = word(u, RUBY_CLASS_BY);
	struct variables v = {class + CLASS_ATTACHED, 1};

	(void)unused;
	u->scratch[OWNER] = 0;
	if (by != RUBY_CLASS_BY_FIELD && variables_of(u, class, &v))
		return -1;
	for (__u32 i = 0; i < VARIABLES && i < v.n; i++) {
		if (AT(u, &value, v.at + (by == RUBY_CLASS_BY_TABLE ? 24ull * i + 16 : 8ull * i)))
			return -1;
		if (!value || value & 7 || AT(u, &o, value) || o[1] != class ||
		    ((o[0] & 31) != T_CLASS && (o[0] & 31) != T_MODULE))
			continue;
		u->scratch[OWNER] = value;
		return 0;
	}
	return -1;
}
FUSEE_PART(fusee_ruby_find_attached, find_attached)

/* Puts the name of OWNER, which find_path() has found, into the function that is emitted. */
static int put_class(struct fusee_unwind *u, __u32 is_singleton)
{
	struct ruby_function *f = fusee_buffer(u);

	if (!f)
		return -1;
	f->is_singleton = (unsigned short)is_singleton;
	f->class_bytes = text(u, f->class_name, RUBY_CLASS_BYTES, u->scratch[OWNER]);
	return 0;
}
FUSEE_PART(fusee_ruby_put_class, put_class)

/* ---- emissions ---- */

/* Begins the emission of a C function. */
static int put_c(struct fusee_unwind *u, __u32 unused)
{
	struct ruby_function *f = fusee_buffer(u);

	(void)unused;
	if (!f)
		return -1;
	*f = (struct ruby_function){.is_c = 1};
	f->label_bytes = text(u, f->label, RUBY_LABEL_BYTES, name_of(u, u->scratch[BODY]));
	f->base_bytes = f->label_bytes;
	return 0;
}
FUSEE_PART(fusee_ruby_put_c, put_c)

/* 1: BODY is of a method's iseq, or of one in it. */
FUSEE_FN int is_of_method(struct fusee_unwind *u)
{
	__u64 local, body;
	__u32 type;

	return !AT(u, &local, u->scratch[BODY] + word(u, RUBY_LOCAL_ISEQ)) &&
	       !AT(u, &body, local + 16) && !AT(u, &type, body) && type == ISEQ_TYPE_METHOD;
}

/* Begins the emission of an iseq. */
static int put_label(struct fusee_unwind *u, __u32 unused)
{
	struct ruby_function *f = fusee_buffer(u);
	struct body b;

	(void)unused;
	if (!f || AT(u, &b, u->scratch[BODY]))
		return -1;
	*f = (struct ruby_function){.is_c = 0};
	f->first_line = word(u, RUBY_FIRST_LINE) ? (__u32)(b.first_line >> 1) : (__u32)b.first_line;
	f->label_bytes = text(u, f->label, RUBY_LABEL_BYTES, b.label);
	if (!f->label_bytes) /* what is emitted is not emitted again */
		return -1;
	f->base_bytes = is_of_method(u) ? length_of(u, b.base_label) : 0;
	return 0;
}
FUSEE_PART(fusee_ruby_put_label, put_label)

/* OWNER is a class: 0 a module or class, 1 a singleton class, -1 neither. */
static int kind_of_owner(struct fusee_unwind *u, __u32 unused)
{
	__u64 flags;

	(void)unused;
	if (!u->scratch[OWNER] || AT(u, &flags, u->scratch[OWNER]))
		return -1;
	if ((flags & 31) == T_CLASS)
		return flags & IS_SINGLETON ? 1 : 0;
	return (flags & 31) == T_MODULE ? 0 : -1;
}
FUSEE_PART(fusee_ruby_kind_of_owner, kind_of_owner)

/* Puts the path into it. The bytes to emit; -1: it cannot be read. */
static int put_path(struct fusee_unwind *u, __u32 unused)
{
	struct ruby_function *f = fusee_buffer(u);
	__u64 type, path;

	(void)unused;
	if (!f || AT(u, &path, u->scratch[BODY] + __builtin_offsetof(struct body, path)))
		return -1;
	/* a String, or an Array of it and its real path */
	if (!AT(u, &type, path) && (type & 31) == T_ARRAY)
		path = element(u, path, 0);
	f->path_bytes = text(u, f->path, RUBY_PATH_BYTES, path);
	return f->path_bytes || is_empty(u, path) ? f->path_bytes : -1;
}
FUSEE_PART(fusee_ruby_put_path, put_path)

static int emit_function(struct fusee_unwind *u, __u32 path_bytes)
{
	__asm__ volatile("" : "+r"(path_bytes));
	path_bytes &= 1023;
	if (path_bytes > RUBY_PATH_BYTES)
		return -1;
	return fusee_emit(u, RUBY_FUNCTION, u->pushed[0],
			  __builtin_offsetof(struct ruby_function, path) + path_bytes);
}
FUSEE_PART(fusee_ruby_emit_function, emit_function)

static int emit_place(struct fusee_unwind *u, __u32 unused)
{
	struct ruby_place *p = fusee_buffer(u);
	__u64 key = fusee_mix(u->pushed[0], u->pushed[1]), encoded, number;

	(void)unused;
	if (!p || AT(u, &encoded, u->scratch[BODY] + BODY_ENCODED))
		return -1;
	/* pc is behind the instruction, but for a function that has not begun */
	number = (u->pushed[1] - encoded) / 8;
	p->function = u->pushed[0];
	p->line = ruby_line(u, u->scratch[BODY] + word(u, RUBY_INSNS), word(u, RUBY_INSN_SIZE),
			    number ? number - 1 : 0);
	p->pad = 0;
	return fusee_emit(u, RUBY_PLACE, key, sizeof(*p));
}
FUSEE_PART(fusee_ruby_emit_place, emit_place)

/* What names the function of the frame that was pushed. 0 or -1. */
FUSEE_FN int send_function(struct fusee_unwind *u, __u32 is_c)
{
	int kind, bytes = 0;

	(void)u; /* calls in the kernel do not pass it */
	if (is_c ? FUSEE_CALL(fusee_ruby_put_c, u, 0) : FUSEE_CALL(fusee_ruby_put_label, u, 0))
		return -1;
	kind = FUSEE_CALL(fusee_ruby_kind_of_owner, u, 0);
	if (kind >= 0 && (!kind || !FUSEE_CALL(fusee_ruby_find_attached, u, 0))) {
		FUSEE_CALL(fusee_ruby_find_path, u, 0);
		FUSEE_CALL(fusee_ruby_put_class, u, (__u32)kind);
	}
	if (!is_c)
		bytes = FUSEE_CALL(fusee_ruby_put_path, u, 0);
	return bytes < 0 ? -1 : FUSEE_CALL(fusee_ruby_emit_function, u, (__u32)bytes);
}

/* Emits what names the frame that was pushed; the place last, since with it all is emitted. What
 * has no room comes with the next sample. */
FUSEE_FN void emit(struct fusee_unwind *u)
{
	__u32 is_c = u->pushed[1] == NO_INSTRUCTION;
	__u32 has_place = !is_c && u->pushed[1] != UNKNOWN_INSTRUCTION;
	struct near *n = near(u);

	if (!n || n->key)
		return;
	if (has_place ? fusee_emitted(u, RUBY_PLACE, fusee_mix(u->pushed[0], u->pushed[1]))
		      : fusee_emitted(u, RUBY_FUNCTION, u->pushed[0])) {
		if (n->memory)
			fusee_remember(u, n->memory, u->pushed[0]);
		return;
	}
	if (!fusee_emitted(u, RUBY_FUNCTION, u->pushed[0]) && send_function(u, is_c))
		return;
	if (has_place)
		FUSEE_CALL(fusee_ruby_emit_place, u, 0);
}

#endif
