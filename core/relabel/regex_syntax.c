// SPDX-License-Identifier: Apache-2.0
#include "relabel/internal/regex_syntax.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/utf8.h"

#define MAX_REPEAT 1000 /* of RE2 */

struct reading {
	struct regex_syntax *to;
	const char *pattern, *at;
	uint32_t depth;
	bool fold[REGEX_MAX_DEPTH + 1]; /* by depth: flag i is set */
	bool repeatable;                /* the last item may be repeated */
	bool repeated;                  /* the last item is repeated already */
};

static int fail(struct reading *r, const char *at, const char *why)
{
	r->to->wrong_at = (size_t)(at - r->pattern);
	r->to->wrong = why;
	return -EINVAL;
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_octal(char c)
{
	return c >= '0' && c <= '7';
}

static bool is_word(char c)
{
	return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static void put(struct reading *r, const char *text)
{
	buf_str(&r->to->out, text);
}

/* Notes that an item which matches text was written. */
static int matched(struct reading *r)
{
	r->repeatable = true;
	r->repeated = false;
	return 0;
}

/* ---- characters ---- */

/* The character at r->at, in UTF-8. */
static uint32_t take_char(struct reading *r)
{
	size_t len = utf8_char(r->at, strlen(r->at));
	uint32_t c = (unsigned char)*r->at;

	if (len > 1)
		c &= 0x7fu >> len;
	for (size_t i = 1; i < len; i++)
		c = c << 6 | ((unsigned char)r->at[i] & 0x3f);
	r->at += len;
	return c;
}

static int hex_digit(char c)
{
	if (is_digit(c))
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* "\x" was read: "7F" or "{10FFFF}". */
static int take_hex(struct reading *r, const char *from, uint32_t *ret)
{
	bool braces = *r->at == '{';
	uint32_t c = 0, n = 0;

	for (r->at += braces; hex_digit(*r->at) >= 0 && (braces || n < 2) && c <= 0x10ffff; n++)
		c = c << 4 | (uint32_t)hex_digit(*r->at++);
	if (braces ? !n || *r->at != '}' : n != 2)
		return fail(r, from, "'\\x' must be followed by two digits, or by {digits}");
	if (c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
		return fail(r, from, "no such character");
	r->at += braces;
	*ret = c;
	return 0;
}

/* The character of an escape sequence; r->at is at its backslash. */
static int take_escape(struct reading *r, uint32_t *ret)
{
	static const char letters[] = "afnrtv", characters[] = "\a\f\n\r\t\v";
	const char *from = r->at++, *letter;
	char c = *r->at;

	if (!c)
		return fail(r, from, "a backslash at the end");
	letter = strchr(letters, c);
	if (c == '0' || (is_octal(c) && is_octal(r->at[1]))) {
		*ret = 0;
		for (uint32_t n = 0; n < 3 && is_octal(*r->at); n++)
			*ret = *ret * 8 + (uint32_t)(*r->at++ - '0');
		return 0;
	}
	if (is_digit(c))
		return fail(r, from, "references to groups are not supported");
	r->at++;
	if (c == 'x')
		return take_hex(r, from, ret);
	*ret = (uint32_t)(letter ? characters[letter - letters] : c);
	if (letter || ((unsigned char)c < 0x80 && (c == '_' || !is_word(c))))
		return 0;
	return fail(r, from, "unknown escape sequence");
}

static void put_char(struct reading *r, uint32_t c)
{
	buf_printf(&r->to->out, "\\x{%x}", c);
}

/* ---- classes of characters ---- */

/* "\pL", "\p{Greek}", "\P{^Lu}". */
static int take_property(struct reading *r)
{
	const char *from = r->at, *name = from + 2, *end;
	bool negated = from[1] == 'P';
	size_t len = 1;

	if (*name == '{') {
		end = strchr(++name, '}');
		if (!end)
			return fail(r, from, "missing '}'");
		negated ^= *name == '^';
		name += *name == '^';
		len = (size_t)(end - name);
		r->at = end + 1;
	} else {
		r->at = name + (*name != 0);
	}
	for (size_t i = 0; i < len; i++)
		if (!is_word(name[i]) || is_digit(name[i]))
			len = 0;
	if (!len || len > 40)
		return fail(r, from, "unknown class of characters");
	/* ignoring case, Lu, Ll and Lt are the same letters, but not in PCRE2 */
	if (r->fold[r->depth] && len == 2 && name[0] == 'L' && strchr("ult", name[1]))
		buf_printf(&r->to->out, "\\%c{L&}", negated ? 'P' : 'p');
	else
		buf_printf(&r->to->out, "\\%c{%s%.*s}", negated ? 'P' : 'p',
			   len > 2 && strncmp(name, "Any", len) ? "sc:" : "", (int)len, name);
	return 0;
}

/* \d, \s, \w and their opposites. RE2's \s lacks the vertical tab, which PCRE2's has. false:
 * another escape. */
static bool take_perl_class(struct reading *r, bool inside)
{
	char c = r->at[0] == '\\' ? r->at[1] : 0;
	char text[3] = {'\\', c, 0};

	if (!c || !strchr("dDsSwW", c))
		return false;
	if (c == 's')
		put(r, inside ? "\\t\\n\\f\\r\\x20" : "[\\t\\n\\f\\r\\x20]");
	else if (c == 'S')
		put(r, inside ? "\\S\\x0b" : "[^\\t\\n\\f\\r\\x20]");
	else
		put(r, text);
	r->at += 2;
	return true;
}

/* "[:alpha:]" in brackets. 1: it was read; 0: there is none. */
static int take_named_class(struct reading *r)
{
	static const char *const names[] = {"alnum", "alpha", "ascii", "blank", "cntrl",
					    "digit", "graph", "lower", "print", "punct",
					    "space", "upper", "word",  "xdigit"};
	const char *name = r->at + 2, *end;

	end = strncmp(r->at, "[:", 2) ? NULL : strstr(name, ":]");
	if (!end)
		return 0;
	name += *name == '^';
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (strlen(names[i]) == (size_t)(end - name) &&
		    !strncmp(names[i], name, strlen(names[i]))) {
			buf_add(&r->to->out, r->at, (size_t)(end + 2 - r->at));
			r->at = end + 2;
			return 1;
		}
	return fail(r, r->at, "unknown class of characters");
}

/* A character in brackets, or a range of them. */
static int take_range(struct reading *r, const char *open)
{
	const char *from = r->at;
	uint32_t first, last;
	int err = 0;

	if (!*r->at)
		return fail(r, open, "missing ']'");
	if (*r->at == '\\')
		err = take_escape(r, &first);
	else
		first = take_char(r);
	last = first;
	if (!err && r->at[0] == '-' && r->at[1] && r->at[1] != ']') {
		r->at++;
		if (*r->at == '\\')
			err = take_escape(r, &last);
		else
			last = take_char(r);
	}
	if (err)
		return err;
	if (last < first)
		return fail(r, from, "a range from a later character to an earlier character");
	put_char(r, first);
	if (last != first) {
		put(r, "-");
		put_char(r, last);
	}
	return 0;
}

static int take_class(struct reading *r)
{
	const char *open = r->at++;
	bool first = true;
	int err = 0;

	put(r, "[");
	if (*r->at == '^')
		buf_add(&r->to->out, r->at++, 1);
	for (; !err && (first || *r->at != ']'); first = false) {
		err = take_named_class(r);
		if (err == 1) {
			err = 0;
			continue;
		}
		if (err || take_perl_class(r, true))
			continue;
		if (r->at[0] == '\\' && (r->at[1] == 'p' || r->at[1] == 'P'))
			err = take_property(r);
		else
			err = take_range(r, open);
	}
	if (err)
		return err;
	put(r, "]");
	r->at++;
	return matched(r);
}

/* ---- repetitions ---- */

/* "{2}", "{2,}", "{2,5}". Returns the number of bytes; 0: a literal brace. */
static size_t read_counts(const char *at, int *least, int *most)
{
	const char *p = at + 1;

	*least = 0;
	*most = -1;
	if (!is_digit(*p))
		return 0;
	for (; is_digit(*p); p++)
		*least = *least > MAX_REPEAT ? *least : *least * 10 + *p - '0';
	if (*p == ',') {
		p++;
		if (is_digit(*p))
			*most = 0;
		for (; is_digit(*p); p++)
			*most = *most > MAX_REPEAT ? *most : *most * 10 + *p - '0';
	} else {
		*most = *least;
	}
	return *p == '}' ? (size_t)(p + 1 - at) : 0;
}

static int take_repetition(struct reading *r, size_t len)
{
	if (r->repeated)
		return fail(r, r->at, "a repetition of a repetition");
	if (!r->repeatable)
		return fail(r, r->at, "there is nothing to repeat");
	len += r->at[len] == '?';
	buf_add(&r->to->out, r->at, len);
	r->at += len;
	r->repeated = true;
	return 0;
}

static int take_brace(struct reading *r)
{
	int least, most;
	size_t len = read_counts(r->at, &least, &most);

	if (!len) {
		put(r, "\\{");
		r->at++;
		return matched(r);
	}
	if (least > MAX_REPEAT || most > MAX_REPEAT || (most >= 0 && most < least))
		return fail(r, r->at, "a repetition must be {n,m} with n <= m <= 1000");
	return take_repetition(r, len);
}

/* ---- groups ---- */

static int add_group(struct reading *r, const char *from, const char *name, size_t len)
{
	struct regex_syntax *s = r->to;

	if (s->ngroups == REGEX_MAX_GROUPS)
		return fail(r, from, "there are more than 99 groups");
	s->groups[++s->ngroups] = (struct regex_group){name, len};
	put(r, "(");
	return 0;
}

/* "(?P<name>", "(?<name>": PCRE2 gets a group without a name. */
static int take_named_group(struct reading *r, size_t head)
{
	const char *from = r->at, *name = from + head;
	size_t len = 0;

	while (is_word(name[len]))
		len++;
	if (!len || name[len] != '>')
		return fail(r, from, "a group's name must be <letters_and_digits>");
	r->at = name + len + 1;
	return add_group(r, from, name, len);
}

/* "(?i)", "(?s-i:": flags for the rest of the group, or for a group of their own. */
static int take_flags(struct reading *r)
{
	const char *from = r->at, *p = from + 2;
	bool minus = false, any = true, fold = r->fold[r->depth];

	for (; *p && strchr("imsU-", *p); p++) {
		if (*p == '-' && minus)
			break;
		minus |= *p == '-';
		any = *p != '-';
		fold = *p == 'i' ? !minus : fold;
	}
	if ((*p != ')' && *p != ':') || !any)
		return fail(r, from, "unknown form of a group");
	buf_add(&r->to->out, from, (size_t)(p + 1 - from));
	r->depth += *p == ':';
	r->fold[r->depth] = fold;
	r->at = p + 1;
	return 0;
}

static int take_group(struct reading *r)
{
	const char *at = r->at;
	int err;

	r->repeatable = r->repeated = false;
	if (r->depth == REGEX_MAX_DEPTH)
		return fail(r, at, "too many groups in groups");
	if (at[1] == '?' && strncmp(at, "(?P<", 4) && strncmp(at, "(?<", 3))
		return take_flags(r);
	r->depth++;
	r->fold[r->depth] = r->fold[r->depth - 1];
	if (at[1] == '?')
		return take_named_group(r, at[2] == 'P' ? 4 : 3);
	err = add_group(r, at, NULL, 0);
	r->at++;
	return err;
}

static int end_group(struct reading *r)
{
	if (!r->depth)
		return fail(r, r->at, "an unexpected ')'");
	r->depth--;
	r->at++;
	put(r, ")");
	return matched(r);
}

/* ---- everything ---- */

static int take_backslash(struct reading *r)
{
	char c = r->at[1];
	uint32_t character;
	int err;

	if (take_perl_class(r, false))
		return matched(r);
	if (c && strchr("AbBz", c)) { /* in a group, so that PCRE2 allows repetitions as RE2 does */
		buf_printf(&r->to->out, "(?:\\%c)", c);
		r->at += 2;
		return matched(r);
	}
	if (c == 'Q') {
		const char *end = strstr(r->at, "\\E");

		for (r->at += 2; *r->at && r->at != end;) {
			put_char(r, take_char(r));
			matched(r);
		}
		r->at += end ? 2 : 0;
		return 0;
	}
	if (c == 'p' || c == 'P') {
		err = take_property(r);
	} else {
		err = take_escape(r, &character);
		if (!err)
			put_char(r, character);
	}
	return err ? err : matched(r);
}

static int take(struct reading *r)
{
	switch (*r->at) {
	case '\\':
		return take_backslash(r);
	case '[':
		return take_class(r);
	case '(':
		return take_group(r);
	case ')':
		return end_group(r);
	case '{':
		return take_brace(r);
	case '*':
	case '+':
	case '?':
		return take_repetition(r, 1);
	case '|':
		put(r, "|");
		r->at++;
		r->repeatable = r->repeated = false;
		return 0;
	case '^':
	case '$':
		buf_printf(&r->to->out, "(?:%c)", *r->at++);
		return matched(r);
	case '.':
		put(r, ".");
		r->at++;
		return matched(r);
	default:
		put_char(r, take_char(r));
		return matched(r);
	}
}

int regex_translate(struct regex_syntax *s, const char *pattern, size_t stop_at)
{
	struct reading r = {.to = s, .pattern = pattern, .at = pattern};
	int err = 0;

	*s = (struct regex_syntax){0};
	if (strlen(pattern) > REGEX_MAX)
		return fail(&r, pattern, "it has more than 4096 bytes");
	for (const char *p = pattern; *p; p += utf8_char(p, strlen(p)))
		if (!utf8_char(p, strlen(p)))
			return fail(&r, p, "it is not UTF-8");
	while (!err && *r.at) {
		s->wrong_at = (size_t)(r.at - pattern);
		err = take(&r);
		if (!err && s->out.len > stop_at)
			return 0;
	}
	if (!err && r.depth)
		err = fail(&r, r.at, "missing ')'");
	return err ? err : s->out.error;
}
