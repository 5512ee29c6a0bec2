/* SPDX-License-Identifier: Apache-2.0 */
#include "demangle/internal/dlang.h"

#include <ctype.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define MOST_STEPS 20000 /* a name may refer to its own parts, which refer to others */
#define MOST_DEPTH 48

/* at == NULL: it is no name of D. */
struct name {
	const char *from, *at;
	int steps, depth;
	int mute; /* what is read is not written */
	void (*take)(const char *piece, size_t len, void *arg);
	void *arg;
};

static bool type(struct name *n);
static bool qualified(struct name *n);

static bool put(struct name *n, const char *text)
{
	if (!n->mute)
		n->take(text, strlen(text), n->arg);
	return true;
}

static bool eat(struct name *n, char c)
{
	if (*n->at != c)
		return false;
	n->at++;
	return true;
}

static bool number(struct name *n, size_t *value)
{
	*value = 0;
	if (!isdigit((unsigned char)*n->at))
		return false;
	while (isdigit((unsigned char)*n->at)) {
		*value = *value * 10 + (size_t)(*n->at++ - '0');
		if (*value > INT32_MAX)
			return false;
	}
	return true;
}

/* Q and a distance backwards in letters, of which the last is a small letter: to where it leads. */
static const char *back(struct name *n)
{
	const char *q = n->at;
	size_t distance = 0;

	if (!eat(n, 'Q'))
		return NULL;
	for (; isupper((unsigned char)*n->at); n->at++) {
		distance = distance * 26 + (size_t)(*n->at - 'A');
		if (distance > INT32_MAX)
			return NULL;
	}
	if (!islower((unsigned char)*n->at))
		return NULL;
	distance = distance * 26 + (size_t)(*n->at++ - 'a');
	return distance && distance <= (size_t)(q - n->from) ? q - distance : NULL;
}

static bool enter(struct name *n)
{
	return ++n->steps < MOST_STEPS && ++n->depth < MOST_DEPTH;
}

/* ---- values of templates ---- */

/* A character as it is written between quotes, by the letter of its type. */
static const char *escaped(size_t code, char of, char text[16])
{
	if (code >= '\t' && code <= '\r')
		snprintf(text, 16, "\\%c", "tnvfr"[code - '\t']);
	else if (code < 0x80 && isprint((int)code))
		snprintf(text, 16, "%c", (char)code);
	else
		snprintf(text, 16,
			 of == 'a'   ? "\\x%02zx"
			 : of == 'u' ? "\\u%04zx"
				     : "\\U%08zx",
			 code);
	return text;
}

static bool string_value(struct name *n)
{
	size_t len;

	n->at++;
	if (!number(n, &len) || !eat(n, '_'))
		return false;
	put(n, "\"");
	for (; len; len--, n->at += 2) {
		static const char hex[] = "0123456789abcdef";
		const char *a = n->at[0] ? strchr(hex, n->at[0]) : NULL;
		const char *b = a && n->at[1] ? strchr(hex, n->at[1]) : NULL;
		char text[16];

		if (!b)
			return false;
		put(n, escaped((size_t)((a - hex) << 4 | (b - hex)), 'a', text));
	}
	return put(n, "\"");
}

static bool value(struct name *n, char of);

static bool values(struct name *n, const char *open, const char *close)
{
	size_t count;

	n->at++;
	if (!number(n, &count))
		return false;
	put(n, open);
	for (size_t i = 0; i < count; i++)
		if ((i && !put(n, ", ")) || !value(n, 0))
			return false;
	return put(n, close);
}

/* The value of a type of characters. */
static bool character(struct name *n, char of)
{
	size_t code;
	char text[16];

	return number(n, &code) && put(n, "'") && put(n, escaped(code, of, text)) && put(n, "'");
}

static bool integer(struct name *n, char of)
{
	const char *from = n->at;

	if (of == 'a' || of == 'u' || of == 'w')
		return character(n, of);
	while (isdigit((unsigned char)*n->at))
		n->at++;
	if (n->at == from)
		return false;
	if (of == 'b')
		return put(n, *from == '0' ? "false" : "true");
	if (!n->mute)
		n->take(from, (size_t)(n->at - from), n->arg);
	if (of == 'l' || of == 'm')
		return put(n, of == 'l' ? "L" : "uL");
	return put(n, of && strchr("htk", of) ? "u" : "");
}

/* of: the letter of its type, which it is shown by. */
static bool value(struct name *n, char of)
{
	bool ok;

	if (!enter(n))
		return false;
	switch (*n->at) {
	case 'n':
		n->at++;
		ok = put(n, "null");
		break;
	case 'N':
	case 'i':
		ok = put(n, *n->at++ == 'N' ? "-" : "") && integer(n, of);
		break;
	case 'a':
	case 'w':
	case 'd':
		ok = string_value(n);
		break;
	case 'A':
		ok = values(n, "[", "]");
		break;
	case 'S':
		ok = values(n, "(", ")");
		break;
	default:
		ok = integer(n, of);
	}
	n->depth--;
	return ok;
}

/* ---- templates ---- */

static bool symbol_argument(struct name *n)
{
	const char *from = n->at;
	size_t len;

	if (number(n, &len) && !strncmp(n->at, "_D", 2)) /* before 2017: the length of all of it */
		from = n->at;
	n->at = from;
	if (strncmp(from, "_D", 2) != 0)
		return qualified(n);
	n->at += 2;
	if (!qualified(n))
		return false;
	n->mute++;
	len = eat(n, 'Z') || ((eat(n, 'M'), true) && type(n));
	n->mute--;
	return len;
}

static bool argument(struct name *n)
{
	size_t len;
	bool ok;
	char of;

	eat(n, 'H');
	switch (*n->at++) {
	case 'T':
		return type(n);
	case 'S':
		return symbol_argument(n);
	case 'V':
		of = *n->at;
		n->mute++;
		ok = type(n);
		n->mute--;
		return ok && value(n, of);
	case 'X':
		if (!number(n, &len) || strnlen(n->at, len) < len)
			return false;
		if (!n->mute)
			n->take(n->at, len, n->arg);
		n->at += len;
		return true;
	default:
		return false;
	}
}

static bool symbol(struct name *n);

/* Behind __T or __U. */
static bool instance(struct name *n)
{
	if (!symbol(n))
		return false;
	put(n, "!(");
	for (bool first = true; !eat(n, 'Z'); first = false)
		if ((!first && !put(n, ", ")) || !argument(n))
			return false;
	return put(n, ")");
}

/* ---- names ---- */

static bool is_instance(const char *at)
{
	return !strncmp(at, "__T", 3) || !strncmp(at, "__U", 3);
}

/* A reference to a name leads to its length; others lead to types. */
static bool is_name(const struct name *n)
{
	struct name there = *n;
	const char *to = *n->at == 'Q' ? back(&there) : n->at;

	return to && (isdigit((unsigned char)*to) || is_instance(n->at));
}

static bool identifier(struct name *n)
{
	static const char *const known[][2] = {{"__ctor", "this"}, {"__dtor", "~this"}};
	size_t len;

	if (!number(n, &len) || !len || strnlen(n->at, len) < len)
		return false;
	if (is_instance(n->at)) {
		const char *end = n->at + len;

		n->at += 3;
		return instance(n) && n->at == end;
	}
	for (size_t i = 0; i < 2; i++)
		if (len == strlen(known[i][0]) && !strncmp(n->at, known[i][0], len)) {
			n->at += len;
			return put(n, known[i][1]);
		}
	if (!n->mute)
		n->take(n->at, len, n->arg);
	n->at += len;
	return true;
}

static bool symbol(struct name *n)
{
	const char *to, *behind;
	bool ok;

	if (!enter(n))
		return false;
	if (*n->at == 'Q') {
		to = back(n);
		behind = n->at;
		if (!to || !isdigit((unsigned char)*to))
			return false;
		n->at = to;
		ok = identifier(n);
		n->at = behind;
	} else if (is_instance(n->at)) {
		n->at += 3;
		ok = instance(n);
	} else {
		ok = identifier(n);
	}
	n->depth--;
	return ok;
}

/* The letters of how a function is called. */
static bool is_call(char c)
{
	return c && strchr("FUWVRY", c);
}

static bool modifiers(struct name *n)
{
	while (*n->at == 'x' || *n->at == 'y' || *n->at == 'O' || !strncmp(n->at, "Ng", 2))
		n->at += *n->at == 'N' ? 2 : 1;
	return true;
}

/* A function's type from how it is called to the end of its parameters, which are written. */
static bool parameters(struct name *n)
{
	static const char *const storage[] = {"in ", "out ", "ref ", "lazy "};

	if (!is_call(*n->at++))
		return false;
	while (*n->at == 'N' && n->at[1] && strchr("abcdefijlm", n->at[1]))
		n->at += 2;
	put(n, "(");
	for (bool first = true; !n->at[0] || !strchr("XYZ", n->at[0]); first = false) {
		if (!first)
			put(n, ", ");
		eat(n, 'M');
		if (!strncmp(n->at, "Nk", 2))
			n->at += 2;
		while (*n->at && strchr("IJKL", *n->at))
			put(n, storage[*n->at++ - 'I']);
		if (!type(n))
			return false;
	}
	put(n, *n->at == 'Z' ? ")" : "...)");
	n->at++;
	return true;
}

/* Names with dots between; functions in functions have the type of the outer before the inner's. */
static bool qualified(struct name *n)
{
	if (!enter(n))
		return false;
	do {
		const char *behind;
		int depth;

		while (*n->at == '0') /* has no name */
			n->at++;
		if (!symbol(n))
			return false;
		behind = n->at;
		depth = n->depth;
		n->mute++;
		if (*n->at == 'M') {
			n->at++;
			modifiers(n);
		}
		if (!is_call(*n->at) || !parameters(n) || !is_name(n))
			n->at = behind;
		n->depth = depth;
		n->mute--;
	} while (is_name(n) && put(n, "."));
	n->depth--;
	return true;
}

/* ---- types ---- */

static bool wrapped(struct name *n, size_t letters, const char *before, const char *behind)
{
	n->at += letters;
	return put(n, before) && type(n) && put(n, behind);
}

/* Written behind what follows it in the name: that is read twice. */
static bool array_of_many(struct name *n)
{
	size_t count;
	char text[32];

	n->at++;
	if (!number(n, &count))
		return false;
	snprintf(text, sizeof(text), "[%zu]", count);
	return wrapped(n, 0, "", text);
}

static bool array_by_key(struct name *n)
{
	const char *key = ++n->at, *behind;
	bool ok;

	n->mute++;
	ok = type(n);
	n->mute--;
	if (!ok || !type(n))
		return false;
	behind = n->at;
	n->at = key;
	put(n, "[");
	ok = type(n);
	n->at = behind;
	return ok && put(n, "]");
}

static bool function(struct name *n, const char *what)
{
	static const char *const linkage[] = {"",
					      "",
					      "extern(C) ",
					      "extern(Windows) ",
					      "extern(Pascal) ",
					      "extern(C++) ",
					      "extern(Objective-C) "};
	const char *from = n->at, *behind, *call = strchr(" FUWVRY", *from);
	bool ok;

	n->mute++;
	ok = call && *from && parameters(n);
	n->mute--;
	if (!ok)
		return false;
	put(n, linkage[call - " FUWVRY"]);
	if (!type(n))
		return false;
	behind = n->at;
	n->at = from;
	put(n, what);
	ok = parameters(n);
	n->at = behind;
	return ok;
}

/* Its function may be a reference to a type before. */
static bool delegate(struct name *n)
{
	const char *to, *behind;
	bool ok;

	if (*n->at != 'Q')
		return function(n, " delegate");
	to = back(n);
	behind = n->at;
	if (!to || !enter(n))
		return false;
	n->at = to;
	ok = function(n, " delegate");
	n->at = behind;
	n->depth--;
	return ok;
}

static bool tuple(struct name *n)
{
	size_t count;

	n->at++;
	if (!number(n, &count))
		return false;
	put(n, "Tuple!(");
	for (size_t i = 0; i < count; i++)
		if ((i && !put(n, ", ")) || !type(n))
			return false;
	return put(n, ")");
}

static bool basic(struct name *n)
{
	static const char letters[] = "vghstiklmfdeopjqrcbauwn";
	static const char *const names[] = {
		"void",    "byte",  "ubyte",  "short", "ushort", "int",     "uint",        "long",
		"ulong",   "float", "double", "real",  "ifloat", "idouble", "ireal",       "cfloat",
		"cdouble", "creal", "bool",   "char",  "wchar",  "dchar",   "typeof(null)"};
	const char *at = *n->at ? strchr(letters, *n->at) : NULL;

	if (!strncmp(n->at, "zi", 2) || !strncmp(n->at, "zk", 2)) {
		n->at += 2;
		return put(n, n->at[-1] == 'i' ? "cent" : "ucent");
	}
	n->at++;
	return at && put(n, names[at - letters]);
}

static bool special(struct name *n)
{
	switch (n->at[1]) {
	case 'g':
		return wrapped(n, 2, "inout(", ")");
	case 'h':
		return wrapped(n, 2, "__vector(", ")");
	case 'n':
		n->at += 2;
		return put(n, "typeof(*null)");
	default:
		return false;
	}
}

static bool referred(struct name *n)
{
	const char *to = back(n), *behind = n->at;
	bool ok;

	if (!to)
		return false;
	n->at = to;
	ok = type(n);
	n->at = behind;
	return ok;
}

static bool one_type(struct name *n)
{
	switch (*n->at) {
	case 'O':
		return wrapped(n, 1, "shared(", ")");
	case 'x':
		return wrapped(n, 1, "const(", ")");
	case 'y':
		return wrapped(n, 1, "immutable(", ")");
	case 'N':
		return special(n);
	case 'A':
		return wrapped(n, 1, "", "[]");
	case 'G':
		return array_of_many(n);
	case 'H':
		return array_by_key(n);
	case 'P':
		return is_call(n->at[1])        ? n->at++,
		       function(n, " function") : wrapped(n, 1, "", "*");
	case 'D':
		n->at++;
		return modifiers(n) && delegate(n);
	case 'B':
		return tuple(n);
	case 'Q':
		return referred(n);
	case 'I':
	case 'C':
	case 'S':
	case 'E':
	case 'T':
		n->at++;
		return qualified(n);
	default:
		return is_call(*n->at) ? function(n, "") : basic(n);
	}
}

static bool type(struct name *n)
{
	bool ok = enter(n) && one_type(n);

	n->depth--;
	return ok;
}

bool demangle_d(const char *s, void (*take)(const char *piece, size_t len, void *arg), void *arg)
{
	struct name n = {.from = s, .at = s + 2, .take = take, .arg = arg};

	if (strncmp(s, "_D", 2) != 0)
		return false;
	if (!strcmp(s, "_Dmain"))
		return put(&n, "D main");
	if (!is_name(&n) || !qualified(&n))
		return false;
	n.mute++;
	if (eat(&n, 'Z'))
		return !*n.at;
	if (eat(&n, 'M'))
		modifiers(&n);
	return type(&n) && !*n.at;
}
