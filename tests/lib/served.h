/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A folder and a server for tests of plugins that speak HTTP. The server, a script of
 * tests/run/lib, writes a line for each request to the folder's file "log". Include it once in a
 * test program, after lib/fakehost.h; it runs from the source's root.
 */
#ifndef SERVED_H
#define SERVED_H

#include <sys/stat.h>
#include <time.h>

#define SERVED __attribute__((unused)) static

static char dir[64];
static int server_stdin = -1; /* the server ends with us */

SERVED void scratch(void)
{
	const char *tmp = getenv("TMPDIR");

	snprintf(dir, sizeof(dir), "%.40s/fusee-XXXXXX", tmp ? tmp : "/tmp");
	CHECK(mkdtemp(dir));
}

SERVED void clean(void)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -rf '%s'", dir);
	CHECK(!system(command));
}

/* Four of them live at a time. */
__attribute__((format(printf, 1, 2))) SERVED char *text(const char *format, ...)
{
	static char all[4][1024];
	static int turn;
	va_list ap;

	turn = (turn + 1) % 4;
	va_start(ap, format);
	vsnprintf(all[turn], sizeof(all[turn]), format, ap);
	va_end(ap);
	return all[turn];
}

SERVED void put(const char *name, const char *what)
{
	FILE *f = fopen(text("%s/%s", dir, name), "w");

	CHECK(f && fputs(what, f) >= 0 && !fclose(f));
}

SERVED const char *read_file(const char *name)
{
	static struct buf b;
	int fd = open(text("%s/%s", dir, name), O_RDONLY);

	CHECK(fd >= 0);
	buf_reset(&b);
	CHECK(!buf_read_fd(&b, fd, 1 << 20) && !buf_add(&b, "", 1));
	close(fd);
	return b.p;
}

/* Of the bodies of all requests that were taken. */
SERVED uint64_t bytes_received(void)
{
	struct stat st;
	uint64_t sum = 0;

	for (int i = 1; !stat(text("%s/%d.pb.gz", dir, i), &st); i++)
		sum += (uint64_t)st.st_size;
	return sum;
}

SERVED int requests(void)
{
	int n = 0;

	if (access(text("%s/log", dir), F_OK))
		return 0;
	for (const char *at = read_file("log"); (at = strchr(at, '\n')); at++)
		n++;
	return n;
}

SERVED bool logged(const char *what)
{
	return strstr(read_file("log"), what);
}

SERVED uint64_t ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* A server of tests/run/lib with these arguments behind its directory, NULL at the end; its port.
 * It ends with us. */
SERVED int serve_by(const char *server, const char *cert, const char *key, const char *client_ca)
{
	int in[2], out[2], port;
	FILE *f;
	pid_t pid;

	if (access(server, X_OK) || system("python3 -c 'import ssl' 2>/dev/null"))
		SKIP("no python3, or not run from the source's root");
	CHECK(!pipe2(in, O_CLOEXEC) && !pipe2(out, O_CLOEXEC));
	pid = fork();
	if (!pid) {
		dup2(in[0], 0);
		dup2(out[1], 1);
		execlp("python3", "python3", server, dir, cert, key, client_ca, NULL);
		_exit(127);
	}
	server_stdin = in[1];
	close(in[0]);
	close(out[1]);
	f = fdopen(out[0], "r");
	CHECK(f && fscanf(f, "%d", &port) == 1);
	fclose(f);
	return port;
}

SERVED int serve(const char *cert, const char *key, const char *client_ca)
{
	return serve_by("tests/run/lib/http_server.py", cert, key, client_ca);
}
#endif
