// SPDX-License-Identifier: Apache-2.0
/* tool_compiler FILE..: a line for each file with the compiler that core/symbols says made it, or
 * "-" and why not. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "symbols/compiler.h"
#include "symbols/source.h"

static void show(const char *path)
{
	struct source *s = NULL;
	struct buf text = {0};
	int fd = open(path, O_RDONLY | O_CLOEXEC), r = source_open(&s, fd);

	if (!r)
		r = compiler_of(s, &text);
	if (r)
		printf("- %s\n", strerror(-r));
	else
		printf("%.*s\n", (int)text.len, text.p);
	buf_fini(&text);
	source_close(s);
	close(fd);
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		show(argv[i]);
	return 0;
}
