/* SPDX-License-Identifier: Apache-2.0 */
// check: fast, covers plugins/sinks/http
/* What an operator reads when a server cannot be reached: one sentence for each reason, the same
 * each time, and a count. Against tests/run/lib/http_server.py: run from the source's root. */
#include <netinet/in.h>
#include <sys/mount.h>

#include "lib/fakehost.h"
#include "lib/begun.h"
#include "lib/served.h"

extern const struct fusee_plugin fusee_plugin;

/* One delivery fails with that error and that sentence, twice the same, and is counted. */
static void check_sentence(const char *url, const char *name, const char *value, int expected,
			   const char *status, const char *sentence)
{
	/* the others are to have all the time that a busy machine takes */
	const char *patience = strstr(url, "/hang") ? "300ms" : "50s";
	struct fake *f = begun(fake_new(&fusee_plugin, "url", url, "connect_timeout", "50s",
					"timeout", patience, name, value, NULL));
	struct builder *b;
	const struct fusee_profile *p = fake_profile(&b, 1, 20000, "process", "web", NULL);

	for (uint32_t i = 0; i < 2; i++) {
		CHECK_INT(fake_consume(f, p, i), expected);
		CHECK_STR(f->error, sentence);
	}
	CHECK_INT(fake_count(f, text("requests{status=\"%s\"}", status)), 2);
	CHECK_INT(f->ncounters, 1);
	builder_free(b);
	fake_free(f);
}

/* There is no answer, for this reason. */
static void no_answer(const char *url, const char *name, const char *value, const char *why)
{
	bool proxy = name && !strcmp(name, "proxy");
	char sentence[512];

	snprintf(sentence, sizeof(sentence), "no answer from '%s'%s%s%s: %s", url,
		 proxy ? " (proxy '" : "", proxy ? value : "", proxy ? "')" : "", why);
	check_sentence(url, name, value, -EAGAIN, "none", sentence);
}

/* ---- certificates ---- */

/* ca.pem, other.pem, and certificates by ca.pem: good, expired, early, named (for another name). */
static void make_certificates(void)
{
	static const char script[] =
		"cd '%s' && exec 2>/dev/null </dev/null && openssl version >/dev/null &&"
		" key='ec -pkeyopt ec_paramgen_curve:P-256' &&"
		" for ca in ca other; do openssl req -x509 -newkey $key -nodes -days 2"
		" -subj /CN=$ca -keyout $ca.key -out $ca.pem || exit 1; done &&"
		" echo subjectAltName=IP:127.0.0.1 >own.ext &&"
		" echo subjectAltName=DNS:other.example >named.ext && : >db && echo 01 >serial &&"
		" printf '%%s\\n' '[ca]' default_ca=d '[d]' new_certs_dir=. database=db"
		" serial=serial default_md=sha256 policy=p '[p]' commonName=supplied >ca.conf &&"
		" make() { openssl req -newkey $key -nodes -subj /CN=$1 -keyout $1.key"
		" -out $1.csr && openssl ca -batch -config ca.conf -in $1.csr -cert ca.pem"
		" -keyfile ca.key -startdate $2 -enddate $3 -extfile $4 -out $1.pem; } &&"
		" make good 20200101000000Z 20990101000000Z own.ext &&"
		" make expired 20200101000000Z 20200201000000Z own.ext &&"
		" make early 20900101000000Z 20990101000000Z own.ext &&"
		" make named 20200101000000Z 20990101000000Z named.ext";

	if (system(text(script, dir)))
		SKIP("no openssl command");
}

static void check_certificate(const char *who, const char *ca, const char *why)
{
	int port = serve(text("%s/%s.pem", dir, who), text("%s/%s.key", dir, who), NULL);
	char url[128], file[128];

	snprintf(url, sizeof(url), "https://127.0.0.1:%d/ok", port);
	snprintf(file, sizeof(file), "%s/%s", dir, ca);
	no_answer(url, "ca_file", file, why);
}

TEST_FOR(certificates, 300)
{
	scratch();
	make_certificates();
	check_certificate("expired", "ca.pem", "its certificate has expired");
	check_certificate("early", "ca.pem",
			  "its certificate is not valid yet, by the clock of this machine");
	check_certificate("named", "ca.pem",
			  "SSL: no alternative certificate subject name matches target host name "
			  "'127.0.0.1'");
	check_certificate("good", "other.pem", "no trusted authority vouches for its certificate");
	CHECK_INT(requests(), 0);
}

/* ---- servers ---- */

TEST_FOR(servers_without_an_answer, 300)
{
	static const struct {
		const char *scheme, *path, *why;
	} all[] = {
		{"https", "ok", "it does not speak TLS"},
		{"http", "hang", "no answer in time"},
		{"http", "truncated-request",
		 "the connection ended before the answer was complete"},
		{"http", "truncated-head", "the connection ended before the answer was complete"},
		{"http", "garbage", "the answer is not HTTP"},
		{"http", "huge-head", "its headers do not end"},
	};
	int port;

	scratch();
	port = serve(NULL, NULL, NULL);
	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
		no_answer(text("%s://127.0.0.1:%d/%s", all[i].scheme, port, all[i].path), NULL,
			  NULL, all[i].why);
	}
	no_answer("http://127.0.0.1:1/x", NULL, NULL, "Connection refused");
}

/* A server that resets each connection once it has read from it. */
static pid_t serve_resets(int *port)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	const struct linger reset = {.l_onoff = 1};
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	socklen_t size = sizeof(at);
	char byte;
	pid_t pid;

	CHECK(!bind(fd, (struct sockaddr *)&at, sizeof(at)) && !listen(fd, 8));
	CHECK(!getsockname(fd, (struct sockaddr *)&at, &size));
	*port = ntohs(at.sin_port);
	pid = fork();
	while (!pid) {
		int client = accept(fd, NULL, NULL);

		setsockopt(client, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
		if (client < 0 || read(client, &byte, 1) < 0 || close(client))
			_exit(1);
	}
	close(fd);
	return pid;
}

TEST_FOR(connections_that_are_reset, 300)
{
	int port;
	pid_t pid = serve_resets(&port);

	no_answer(text("https://127.0.0.1:%d/ok", port), NULL, NULL,
		  "the connection ended before TLS began");
	no_answer(text("http://127.0.0.1:%d/ok", port), NULL, NULL,
		  "the connection ended before the answer was complete");
	CHECK(!kill(pid, SIGKILL) && waitpid(pid, NULL, 0) == pid);
}

/* An address that is wrong, and a token that was right. */
TEST_FOR(servers_that_refuse, 300)
{
	char url[128], sentence[512];
	int port;

	scratch();
	put("token", "of last year");
	port = serve(NULL, NULL, NULL);
	snprintf(url, sizeof(url), "http://127.0.0.1:%d/say/404/no%%20such%%20page", port);
	snprintf(sentence, sizeof(sentence), "'%s' answered 404: no such page", url);
	check_sentence(url, NULL, NULL, FAKE_DENIED, "4xx", sentence);
	snprintf(url, sizeof(url), "http://127.0.0.1:%d/say/401/token%%20expired", port);
	snprintf(sentence, sizeof(sentence), "'%s' answered 401: token expired", url);
	check_sentence(url, "bearer_file", text("%s/token", dir), FAKE_DENIED, "4xx", sentence);
	CHECK(logged("Bearer of last year"));
}

/* ---- names, proxies ---- */

TEST(names_that_do_not_exist)
{
	scratch();
	put("nsswitch.conf", "hosts: files\n"); /* no waiting for a name server */
	if (geteuid() || unshare(CLONE_NEWNS) ||
	    mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount(text("%s/nsswitch.conf", dir), "/etc/nsswitch.conf", NULL, MS_BIND, NULL))
		SKIP("needs namespaces and root");
	no_answer("http://backend.invalid:4040/x", NULL, NULL,
		  "DNS does not know its name, or does not answer");
	no_answer("http://backend.example/x", "proxy", "http://proxy.invalid:3128",
		  "DNS does not know the proxy's name, or does not answer");
}

TEST_FOR(proxies, 300)
{
	char proxy[64], url[64], sentence[256];

	scratch();
	snprintf(proxy, sizeof(proxy), "http://127.0.0.1:%d", serve(NULL, NULL, NULL));
	no_answer("http://backend.example/ok", "proxy", "http://127.0.0.1:1", "Connection refused");
	no_answer("http://backend.example/ok", "proxy", "socks5h://127.0.0.1:1",
		  "Connection refused");
	no_answer("http://backend.example/hang", "proxy", proxy, "no answer in time");
	no_answer("https://refuse-407.example/ok", "proxy", proxy, "the proxy answered 407");
	no_answer("https://refuse-503.example/ok", "proxy", proxy, "the proxy answered 503");
	/* its 200 to CONNECT is no answer of the server's */
	no_answer("https://backend.example/ok", "proxy", proxy,
		  "the connection ended before TLS began");
	snprintf(url, sizeof(url), "http://backend.example/status/407");
	snprintf(sentence, sizeof(sentence), "'%s' (proxy '%s') answered 407", url, proxy);
	check_sentence(url, "proxy", proxy, FAKE_DENIED, "4xx", sentence);
}
