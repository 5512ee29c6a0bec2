/* SPDX-License-Identifier: Apache-2.0 */
/* Draws a graph by Graphviz's program `dot`. */
#ifndef CONSOLE_GRAPHVIZ_H
#define CONSOLE_GRAPHVIZ_H

#include "base/buf.h"

/* The format for the suffix of `path`, as for -T of dot: "svg", "png", "pdf"; "dot" for .dot and
 * "-". NULL: another suffix. */
const char *graphviz_format(const char *path);
/* Replaces the text in `graph`, Graphviz's language, by the picture in that format. 0, or -errno as
 * tool_run(). */
int graphviz_draw(struct buf *graph, const char *format);
#endif
