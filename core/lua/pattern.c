// SPDX-License-Identifier: Apache-2.0
/*
 * Counts the steps of Lua's pattern matcher. A policy matches texts that any user of the machine
 * can choose (names of containers, commands, paths), and a pattern with three "(.-)" keeps Lua's
 * matcher busy for 90 seconds on 4 KiB of such text. No debug hook interrupts a call in C, so
 * without this file such a text would stop the control thread.
 *
 * The matcher here tries the same alternatives in the same order as that of Lua 5.4. It stops where
 * Lua would raise an error.
 */
#include "lua/internal/pattern.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

enum { MAX_DEPTH = 200, MAX_CAPTURES = 32, OPEN = -1, POSITION = -2 };

struct walk {
	const char *text, *end, *pattern_end;
	uint64_t steps, most;
	int depth, ncaptures;
	bool over; /* too many steps, or where Lua raises an error */
	struct {
		const char *at;
		ptrdiff_t len; /* or OPEN, POSITION */
	} captures[MAX_CAPTURES];
};

static const char *match(struct walk *w, const char *s, const char *p);

static bool tick(struct walk *w, uint64_t n)
{
	w->steps += n;
	if (w->steps > w->most)
		w->over = true;
	return !w->over;
}

static const char *fail(struct walk *w)
{
	w->over = true;
	return NULL;
}

/* The end of the class at p: ".", "%a", "[..]". NULL: malformed. */
static const char *class_end(struct walk *w, const char *p)
{
	if (*p++ == '%')
		return p < w->pattern_end ? p + 1 : fail(w);
	if (p[-1] != '[')
		return p;
	if (p < w->pattern_end && *p == '^')
		p++;
	do {
		if (p >= w->pattern_end)
			return fail(w);
		if (*p++ == '%')
			p++;
	} while (p >= w->pattern_end || *p != ']');
	return p + 1;
}

static bool in_class(unsigned char c, unsigned char cl)
{
	bool in;

	switch (tolower(cl)) {
	case 'a':
		in = isalpha(c);
		break;
	case 'c':
		in = iscntrl(c);
		break;
	case 'd':
		in = isdigit(c);
		break;
	case 'g':
		in = isgraph(c);
		break;
	case 'l':
		in = islower(c);
		break;
	case 'p':
		in = ispunct(c);
		break;
	case 's':
		in = isspace(c);
		break;
	case 'u':
		in = isupper(c);
		break;
	case 'w':
		in = isalnum(c);
		break;
	case 'x':
		in = isxdigit(c);
		break;
	default:
		return cl == c;
	}
	return isupper(cl) ? !in : in;
}

/* set: at its '['; last: at its ']' */
static bool in_set(struct walk *w, unsigned char c, const char *set, const char *last)
{
	bool found = true;

	if (set[1] == '^') {
		found = false;
		set++;
	}
	while (++set < last) {
		w->steps++;
		if (*set == '%') {
			set++;
			if (in_class(c, (unsigned char)*set))
				return found;
		} else if (set[1] == '-' && set + 2 < last) {
			set += 2;
			if ((unsigned char)set[-2] <= c && c <= (unsigned char)*set)
				return found;
		} else if ((unsigned char)*set == c) {
			return found;
		}
	}
	return !found;
}

static bool single(struct walk *w, const char *s, const char *p, const char *ep)
{
	unsigned char c;

	if (s >= w->end || !tick(w, 1))
		return false;
	c = (unsigned char)*s;
	switch (*p) {
	case '.':
		return true;
	case '%':
		return in_class(c, (unsigned char)p[1]);
	case '[':
		return in_set(w, c, p, ep - 1);
	default:
		return (unsigned char)*p == c;
	}
}

static const char *balance(struct walk *w, const char *s, const char *p)
{
	int depth = 1;

	if (p >= w->pattern_end - 1)
		return fail(w);
	if (s >= w->end || *s != *p)
		return NULL;
	while (++s < w->end && tick(w, 1)) {
		if (*s == p[1]) {
			if (!--depth)
				return s + 1;
		} else if (*s == *p) {
			depth++;
		}
	}
	return NULL;
}

static const char *most_first(struct walk *w, const char *s, const char *p, const char *ep)
{
	ptrdiff_t i = 0;

	while (single(w, s + i, p, ep))
		i++;
	for (; i >= 0 && !w->over; i--) {
		const char *end = match(w, s + i, ep + 1);

		if (end)
			return end;
	}
	return NULL;
}

static const char *least_first(struct walk *w, const char *s, const char *p, const char *ep)
{
	while (!w->over) {
		const char *end = match(w, s, ep + 1);

		if (end)
			return end;
		if (!single(w, s, p, ep))
			return NULL;
		s++;
	}
	return NULL;
}

static const char *begin_capture(struct walk *w, const char *s, const char *p, ptrdiff_t what)
{
	const char *end;

	if (w->ncaptures >= MAX_CAPTURES)
		return fail(w);
	w->captures[w->ncaptures].at = s;
	w->captures[w->ncaptures].len = what;
	w->ncaptures++;
	end = match(w, s, p);
	if (!end)
		w->ncaptures--;
	return end;
}

static const char *end_capture(struct walk *w, const char *s, const char *p)
{
	int l = w->ncaptures - 1;
	const char *end;

	while (l >= 0 && w->captures[l].len != OPEN)
		l--;
	if (l < 0)
		return fail(w);
	w->captures[l].len = s - w->captures[l].at;
	end = match(w, s, p);
	if (!end)
		w->captures[l].len = OPEN;
	return end;
}

static const char *back_reference(struct walk *w, const char *s, char digit)
{
	int l = digit - '1';
	size_t len;

	if (l < 0 || l >= w->ncaptures || w->captures[l].len == OPEN)
		return fail(w);
	if (w->captures[l].len < 0)
		return NULL;
	len = (size_t)w->captures[l].len;
	if (!tick(w, 1 + len / 16) || (size_t)(w->end - s) < len ||
	    memcmp(w->captures[l].at, s, len))
		return NULL;
	return s + len;
}

static bool frontier(struct walk *w, const char *s, const char *p, const char *ep)
{
	unsigned char before = s == w->text ? 0 : (unsigned char)s[-1];
	unsigned char now = s == w->end ? 0 : (unsigned char)*s;

	return !in_set(w, before, p, ep - 1) && in_set(w, now, p, ep - 1);
}

/* Matches one class with its repetition. NULL with *goes_on: matching continues at *s and *p. */
static const char *one(struct walk *w, const char **s, const char **p, bool *goes_on)
{
	const char *ep = class_end(w, *p), *end;
	char suffix;

	if (!ep || w->over)
		return NULL;
	suffix = ep < w->pattern_end ? *ep : '\0';
	if (!single(w, *s, *p, ep)) {
		*goes_on = !w->over && (suffix == '*' || suffix == '?' || suffix == '-');
		*p = ep + 1;
		return NULL;
	}
	switch (suffix) {
	case '*':
		return most_first(w, *s, *p, ep);
	case '+':
		return most_first(w, *s + 1, *p, ep);
	case '-':
		return least_first(w, *s, *p, ep);
	case '?':
		end = match(w, *s + 1, ep + 1);
		if (end)
			return end;
		*p = ep + 1;
		break;
	default:
		(*s)++;
		*p = ep;
	}
	*goes_on = !w->over;
	return NULL;
}

/* "%b", "%f", "%1"; anything else is a class. */
static const char *escaped(struct walk *w, const char **s, const char **p, bool *goes_on)
{
	char what = *p + 1 < w->pattern_end ? (*p)[1] : '\0';
	const char *ep, *end;

	if (what == 'f') {
		*p += 2;
		if (*p >= w->pattern_end || **p != '[')
			return fail(w);
		ep = class_end(w, *p);
		if (!ep || !frontier(w, *s, *p, ep))
			return NULL;
		*p = ep;
	} else if (what == 'b' || isdigit((unsigned char)what)) {
		end = what == 'b' ? balance(w, *s, *p + 2) : back_reference(w, *s, what);
		if (!end)
			return NULL;
		*s = end;
		*p += what == 'b' ? 4 : 2;
	} else {
		return one(w, s, p, goes_on);
	}
	*goes_on = true;
	return NULL;
}

static const char *match(struct walk *w, const char *s, const char *p)
{
	const char *end = NULL;
	bool goes_on = true;

	if (++w->depth > MAX_DEPTH) /* "pattern too complex" */
		tick(w, w->most + 1);
	while (goes_on && tick(w, 1)) {
		goes_on = false;
		if (p >= w->pattern_end)
			end = s;
		else if (*p == '(' && p + 1 < w->pattern_end && p[1] == ')')
			end = begin_capture(w, s, p + 2, POSITION);
		else if (*p == '(')
			end = begin_capture(w, s, p + 1, OPEN);
		else if (*p == ')')
			end = end_capture(w, s, p + 1);
		else if (*p == '$' && p + 1 == w->pattern_end)
			end = s == w->end ? s : NULL;
		else if (*p == '%')
			end = escaped(w, &s, &p, &goes_on);
		else
			end = one(w, &s, &p, &goes_on);
	}
	w->depth--;
	return w->over ? NULL : end;
}

uint64_t pattern_cost(struct pattern_text text, struct pattern_text pattern, size_t init,
		      enum pattern_search search, uint64_t most)
{
	bool anchor = search != PATTERN_GMATCH && pattern.len && *pattern.p == '^';
	const char *p = pattern.p + anchor, *s = text.p + (init < text.len ? init : text.len);
	struct walk w = {.text = text.p,
			 .end = text.p + text.len,
			 .pattern_end = pattern.p + pattern.len,
			 .most = most};
	const char *last = NULL;

	while (!w.over) {
		const char *end;

		w.ncaptures = w.depth = 0;
		end = match(&w, s, p);
		if (end && search == PATTERN_FIRST)
			break;
		if (end && end != last)
			s = last = end;
		else if (s < w.end)
			s++;
		else
			break;
		if (anchor)
			break;
	}
	return w.steps > most ? most + 1 : w.steps;
}
