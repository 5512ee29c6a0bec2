/* SPDX-License-Identifier: Apache-2.0 */
#include "console/graphviz.h"

#include <stdio.h>
#include <string.h>

#include "console/tool.h"

const char *graphviz_format(const char *path)
{
	static const char *const formats[] = {"svg", "png", "pdf", "dot"};
	const char *ending = strrchr(path, '.');

	if (!strcmp(path, "-"))
		return "dot";
	for (size_t i = 0; ending && i < sizeof(formats) / sizeof(formats[0]); i++)
		if (!strcmp(ending + 1, formats[i]))
			return formats[i];
	return NULL;
}

int graphviz_draw(struct buf *graph, const char *format)
{
	char type[16];
	char *argv[] = {(char[]){"dot"}, type, NULL};
	struct buf picture = {0};
	int r;

	snprintf(type, sizeof(type), "-T%s", format);
	r = tool_run(argv, graph, &picture);
	if (r) {
		buf_fini(&picture);
		return r;
	}
	buf_fini(graph);
	*graph = picture;
	return 0;
}
