/* SPDX-License-Identifier: Apache-2.0 */
#include "console/grid.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/utf8.h"

enum { GAP = 2 };

/* The width of the text: a column for each character. */
static uint32_t columns_of(const char *s, size_t len)
{
	uint32_t n = 0;

	for (size_t i = 0; i < len; i++)
		n += ((unsigned char)s[i] & 0xc0) != 0x80;
	return n;
}

void grid_cell(struct grid *g, const char *format, ...)
{
	struct buf raw = {0};
	va_list ap;
	char *text;
	int n;

	va_start(ap, format);
	n = vasprintf(&text, format, ap);
	va_end(ap);
	if (n < 0 || utf8_clean_printable(&raw, text, (size_t)n))
		g->text.error = -ENOMEM;
	buf_add(&g->text, raw.p, raw.len);
	buf_add(&g->text, "", 1);
	g->ncells++;
	buf_fini(&raw);
	if (n >= 0)
		free(text);
}

void grid_fini(struct grid *g)
{
	buf_fini(&g->text);
}

static void add_spaces(struct buf *out, uint32_t n)
{
	buf_printf(out, "%*s", (int)n, "");
}

/* Sets the widths of columns that do not fit to 0, optional columns first. */
static void drop_columns(const struct grid *g, uint32_t *widths, uint32_t width)
{
	for (;;) {
		uint32_t sum = 0, last = 0, drop = GRID_COLUMNS;

		for (uint32_t i = 0; i < g->ncolumns; i++) {
			const struct grid_column *c = &g->columns[i];

			if (!widths[i])
				continue;
			sum += widths[i] + GAP;
			last = i;
			if (c->optional &&
			    (drop == GRID_COLUMNS || c->optional < g->columns[drop].optional))
				drop = i;
		}
		/* The last column may be truncated, to at least 24 columns. */
		if (!g->columns[last].right && widths[last] > 24)
			sum -= widths[last] - 24;
		if (!width || sum <= width + GAP || drop == GRID_COLUMNS)
			return;
		widths[drop] = 0;
	}
}

/* The text, or its beginning and an ellipsis if it is wider than room. */
static void add_truncated(struct buf *out, const char *s, uint32_t room)
{
	size_t len = strlen(s);

	if (columns_of(s, len) <= room) {
		buf_str(out, s);
		return;
	}
	while (len && columns_of(s, len) >= (room ? room : 1))
		len--;
	while (len && ((unsigned char)s[len] & 0xc0) == 0x80)
		len--;
	buf_add(out, s, len);
	if (room)
		buf_str(out, "\xe2\x80\xa6");
}

static void add_row(const struct grid *g, const uint32_t *widths, uint32_t width,
		    const char *const *cells, struct buf *out)
{
	uint32_t at = 0, last = 0;

	for (uint32_t i = 0; i < g->ncolumns; i++)
		last = widths[i] ? i : last;
	for (uint32_t i = 0; i < g->ncolumns; i++) {
		uint32_t n = columns_of(cells[i], strlen(cells[i]));

		if (!widths[i])
			continue;
		if (at) {
			add_spaces(out, GAP);
			at += GAP;
		}
		if (i == last && !g->columns[i].right) {
			add_truncated(out, cells[i],
				      width ? (width > at ? width - at : 0) : UINT32_MAX);
			break;
		}
		if (g->columns[i].right)
			add_spaces(out, widths[i] - n);
		buf_str(out, cells[i]);
		if (!g->columns[i].right && i != last)
			add_spaces(out, widths[i] - n);
		at += widths[i];
	}
	buf_str(out, "\n");
}

void grid_print(const struct grid *g, uint32_t width, struct buf *out)
{
	const char *cells[GRID_COLUMNS], *p = g->text.p;
	uint32_t widths[GRID_COLUMNS];

	if (g->text.error) {
		out->error = g->text.error;
		return;
	}
	for (uint32_t i = 0; i < g->ncolumns; i++) {
		cells[i] = g->columns[i].title;
		widths[i] = columns_of(cells[i], strlen(cells[i]));
	}
	for (uint32_t i = 0; i < g->ncells; i++, p += strlen(p) + 1) {
		uint32_t n = columns_of(p, strlen(p)), *w = &widths[i % g->ncolumns];

		*w = n > *w ? n : *w;
	}
	drop_columns(g, widths, width);
	add_row(g, widths, width, cells, out);
	p = g->text.p;
	for (uint32_t i = 0; i < g->ncells; i++, p += strlen(p) + 1) {
		cells[i % g->ncolumns] = p;
		if (i % g->ncolumns == g->ncolumns - 1)
			add_row(g, widths, width, cells, out);
	}
}

uint32_t grid_width(void)
{
	const char *columns = getenv("COLUMNS");
	unsigned long n = columns ? strtoul(columns, NULL, 10) : 0;
	struct winsize w;

	if (n >= 20 && n <= 1000)
		return (uint32_t)n;
	if (isatty(STDOUT_FILENO) && !ioctl(STDOUT_FILENO, TIOCGWINSZ, &w))
		return w.ws_col;
	return 0;
}

void grid_wrap(struct buf *out, const char *text, uint32_t used, uint32_t indent, uint32_t width)
{
	struct buf clean = {0};
	uint32_t at = used;
	bool first = true;

	utf8_clean(&clean, text, strlen(text));
	buf_add(&clean, "", 1);
	if (clean.error)
		out->error = clean.error;
	for (char *p = clean.error ? "" : clean.p; *p;) {
		size_t len = strcspn(p, " \n\t");
		uint32_t n = columns_of(p, len);

		if (!first && width && at + 1 + n > width) {
			buf_str(out, "\n");
			add_spaces(out, indent);
			at = indent;
		} else if (!first && len) {
			buf_str(out, " ");
			at++;
		}
		utf8_clean_printable(out, p, len);
		at += n;
		first = first && !len;
		p += len;
		p += strspn(p, " \n\t");
	}
	buf_str(out, "\n");
	buf_fini(&clean);
}
