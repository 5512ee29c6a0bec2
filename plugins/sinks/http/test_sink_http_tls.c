/* SPDX-License-Identifier: Apache-2.0 */
// check: fast, covers plugins/sinks/http
/* TLS of sink.http, against tests/run/lib/http_server.py: run from the source's root. */

#include "lib/http_cases.h"

static void make_certificates(void)
{
	static const char script[] =
		"cd '%s' && exec 2>/dev/null </dev/null && openssl version >/dev/null &&"
		" key='ec -pkeyopt ec_paramgen_curve:P-256' &&"
		" for ca in ca other; do openssl req -x509 -newkey $key -nodes -days 2"
		" -subj /CN=$ca -keyout $ca.key -out $ca.pem || exit 1; done &&"
		" for who in server client; do openssl req -newkey $key -nodes -subj /CN=$who"
		" -keyout $who.key -out $who.csr &&"
		" echo subjectAltName=IP:127.0.0.1,DNS:localhost >$who.ext &&"
		" openssl x509 -req -in $who.csr -CA ca.pem -CAkey ca.key -CAcreateserial"
		" -days 2 -extfile $who.ext -out $who.pem || exit 1; done &&"
		" cat client.pem client.key >both.pem";

	if (system(text(script, dir)))
		SKIP("no openssl command");
}

static char *in_dir(const char *name)
{
	return text("%s/%s", dir, name);
}

static void check_tls(const char *url, const char *name, const char *value, int expected,
		      const char *error)
{
	struct fake *f = name ? fake_new(&fusee_plugin, "url", url, name, value, NULL)
			      : fake_new(&fusee_plugin, "url", url, NULL);
	int r;

	CHECK_INT(fake_init(f), 0);
	r = deliver(f, 1, 3);
	if (r != expected)
		fprintf(stderr, "# %s\n", f->error);
	CHECK_INT(r, expected);
	CHECK(strstr(f->error, error));
	fake_free(f);
}

TEST(tls)
{
	char url[128];
	struct fake *f;
	int port;

	scratch();
	make_certificates();
	port = serve(in_dir("server.pem"), in_dir("server.key"), NULL);
	snprintf(url, sizeof(url), "https://127.0.0.1:%d/ok", port);
	check_tls(url, NULL, NULL, -EAGAIN, "certificate");
	check_tls(url, "ca_file", in_dir("other.pem"), -EAGAIN, "certificate");
	CHECK_INT(requests(), 0);
	check_tls(url, "ca_file", in_dir("ca.pem"), 0, "");
	check_tls(url, "insecure", "true", 0, "");
	CHECK_INT(requests(), 2);
	f = begun(fake_new(&fusee_plugin, "url", url, "insecure", "true", NULL));
	CHECK(fake_logged(f, "insecure: the server's certificate is not checked"));
	fake_free(f);
	check_cancel_at(text("https://127.0.0.1:%d/hang", port), in_dir("ca.pem"));
}

/* Serves with the server's certificate; `url` of what is always accepted. */
static void serve_tls(char *url, size_t len, const char *client_ca)
{
	snprintf(url, len, "https://127.0.0.1:%d/ok",
		 serve(in_dir("server.pem"), in_dir("server.key"), client_ca));
}

/* The system's folder has the server's authority, but ca_file another. */
TEST(tls_with_ca_file_alone)
{
	char url[128];

	if (geteuid() || unshare(CLONE_NEWNS))
		SKIP("needs root");
	scratch();
	make_certificates();
	CHECK(!system(text("cd '%s' && mkdir store && cp ca.pem store && openssl rehash store &&"
			   " mount --make-rprivate / && mount --bind store /etc/ssl/certs",
			   dir)));
	serve_tls(url, sizeof(url), NULL);
	check_tls(url, "ca_file", in_dir("other.pem"), -EAGAIN, "certificate");
	CHECK_INT(requests(), 0);
	check_tls(url, "ca_file", in_dir("ca.pem"), 0, "");
}

TEST(tls_of_another_name)
{
	char url[128];

	scratch();
	make_certificates();
	CHECK(!system(text("cd '%s' && echo subjectAltName=DNS:other.example >x.ext &&"
			   " openssl x509 -req -in server.csr -CA ca.pem -CAkey ca.key"
			   " -CAcreateserial -days 2 -extfile x.ext -out server.pem 2>/dev/null",
			   dir)));
	serve_tls(url, sizeof(url), NULL);
	check_tls(url, "ca_file", in_dir("ca.pem"), -EAGAIN, "127.0.0.1");
	CHECK_INT(requests(), 0);
}

TEST(tls_with_our_own_certificate)
{
	struct fake *f;
	char url[128];

	scratch();
	make_certificates();
	serve_tls(url, sizeof(url), in_dir("ca.pem"));
	check_tls(url, "ca_file", in_dir("ca.pem"), -EAGAIN, "no answer from '");
	f = begun(fake_new(&fusee_plugin, "url", url, "ca_file", in_dir("ca.pem"), "cert_file",
			   in_dir("client.pem"), "key_file", in_dir("client.key"), NULL));
	CHECK_INT(deliver(f, 1, 3), 0);
	fake_free(f);
	f = begun(fake_new(&fusee_plugin, "url", url, "ca_file", in_dir("ca.pem"), "cert_file",
			   in_dir("both.pem"), NULL));
	CHECK_INT(deliver(f, 1, 3), 0);
	fake_free(f);
}

static struct buf files_read;

static int note_secret(struct fusee_instance *in, const char *path, char *buf, uint32_t cap)
{
	buf_printf(&files_read, "%s ", path + strlen(dir) + 1);
	return -EFBIG;
}

/* Neither the connection nor the TLS session of a certificate that was denied is used again, and
 * the host watches the files. */
TEST(a_certificate_that_is_denied)
{
	struct fake *f;
	int port;

	scratch();
	make_certificates();
	port = serve(in_dir("server.pem"), in_dir("server.key"), in_dir("ca.pem"));
	f = fake_new(&fusee_plugin, "url", text("https://127.0.0.1:%d/flaky/1/403", port),
		     "ca_file", in_dir("ca.pem"), "cert_file", in_dir("client.pem"), "key_file",
		     in_dir("client.key"), NULL);
	f->host.read_secret = note_secret;
	CHECK_INT(fake_init(f), 0);
	buf_add(&files_read, "", 1);
	CHECK_STR(files_read.p, "ca.pem client.pem client.key ");
	CHECK_INT(deliver(f, 1, 3), FAKE_DENIED);
	CHECK(!system(
		text("cd '%s' && cp server.pem client.pem && cp server.key client.key", dir)));
	CHECK_INT(deliver(f, 1, 3), 0);
	CHECK_INT(deliver(f, 2, 3), 0);
	CHECK(logged("\"n\": 1, \"connection\": 1, \"client\": \"client\","));
	CHECK(logged("\"n\": 2, \"connection\": 2, \"client\": \"server\","));
	CHECK(logged("\"n\": 3, \"connection\": 2, \"client\": \"server\","));
	fake_free(f);
	buf_fini(&files_read);
}
