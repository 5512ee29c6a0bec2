/* SPDX-License-Identifier: Apache-2.0 */
// check: fast, covers plugins/discovery/kubernetes
/* discovery kubernetes: kubeconfigs, options, a server that is not there. */
#include "test.h"

#include "lib/fakehost.h"
#include "lib/begun.h"
#include "lib/discovery.h"
#include "kubeconfig.h"

extern const struct fusee_plugin fusee_plugin;

/* ---- kubeconfig ---- */

static struct fake *fake;
static struct fusee_self self;
static char config_path[64];

static void begin(void)
{
	fake = fake_new(&fusee_plugin, NULL);
	self = (struct fusee_self){(struct fusee_instance *)(void *)fake, &fake->host};
}

static int read_config(struct server *s, const char *text)
{
	int fd, r;

	strcpy(config_path, "/tmp/fusee-kubeconfig-XXXXXX");
	fd = mkstemp(config_path);
	CHECK(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
	close(fd);
	fake_forget(fake);
	*s = (struct server){0};
	r = kubeconfig_read(s, &self, config_path);
	unlink(config_path);
	return r;
}

#define CLUSTERS                                                              \
	"apiVersion: v1\nkind: Config\ncurrent-context: b\ncontexts:\n"       \
	"- {name: a, context: {cluster: none, user: none}}\n"                 \
	"- name: b\n  context:\n    cluster: here\n    user: me\nclusters:\n" \
	"- name: here\n  cluster:\n    server: https://127.0.0.1:6443/\n"

TEST(a_kubeconfig)
{
	struct server s;

	begin();
	CHECK_INT(read_config(&s, CLUSTERS
			      "    certificate-authority-data: Q0Et\n      QnJvd24=\nusers:\n"
			      "- name: me\n  user:\n    client-certificate: me.crt\n"
			      "    client-key: /keys/me.key\n    token: abc\n"),
		  0);
	CHECK_STR(s.url, "https://127.0.0.1:6443/");
	CHECK_INT(s.ca.n, 8);
	CHECK(!memcmp(s.ca.p, "CA-Brown", 8));
	CHECK_STR(s.cert_file, "/tmp/me.crt");
	CHECK_STR(s.key_file, "/keys/me.key");
	CHECK_STR(s.token, "abc");
	CHECK(!s.insecure);
	server_fini(&s);
	/* JSON is YAML */
	CHECK_INT(read_config(&s, "{\"current-context\":\"c\",\"contexts\":[{\"name\":\"c\","
				  "\"context\":{\"cluster\":\"k\"}}],\"clusters\":[{\"name\":\"k\","
				  "\"cluster\":{\"server\":\"http://localhost:8001\","
				  "\"insecure-skip-tls-verify\":true}}]}"),
		  0);
	CHECK_STR(s.url, "http://localhost:8001");
	CHECK(s.insecure);
	server_fini(&s);
	fake_free(fake);
}

TEST(kubeconfigs_that_cannot_be_used)
{
	static const char *const wrong[][2] = {
		{"", "no current-context"},
		{"- a", "no current-context"},
		{"a: [", "is not YAML: line"},
		{"current-context: x", "no context 'x'"},
		{"current-context: x\ncontexts: [{name: x, context: {cluster: k}}]",
		 "no cluster 'k'"},
		{CLUSTERS, "no user 'me'"},
		{CLUSTERS "users: [{name: me, user: {exec: {command: aws-iam, args: [a]}}}]",
		 "from a program ('aws-iam')"},
		{CLUSTERS "users: [{name: me, user: {auth-provider: {name: gcp}}}]",
		 "kubectl create token"},
		{CLUSTERS "users: [{name: me, user: {as: root}}]", "'as'"},
		{CLUSTERS "    proxy-url: socks5://x\nusers: [{name: me, user: {}}]",
		 "'proxy-url'"},
		{CLUSTERS "    certificate-authority-data: '!!'\nusers: [{name: me, user: {}}]",
		 "not base64"},
		{"&a [*a, *a]", "no current-context"},
		{"current-context: x\ncontexts: &c [*c, {name: x, context: *c}]", "no cluster ''"},
	};
	struct server s;

	begin();
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		CHECK_INT(read_config(&s, wrong[i][0]), -EINVAL);
		fprintf(stderr, "# %s\n", fake->error);
		CHECK(strstr(fake->error, wrong[i][1]));
		CHECK(strstr(fake->error, config_path));
		server_fini(&s);
	}
	fake_free(fake);
}

/* ---- the instance ---- */

static void refused(const char *sentence, const char *name, const char *text, const char *name2,
		    const char *text2)
{
	struct fake *f = fake_new(&fusee_plugin, name, text, name2, text2, NULL);

	CHECK_INT(fake_init(f), -EINVAL);
	fprintf(stderr, "# %s\n", f->error);
	CHECK(strstr(f->error, sentence));
	fake_free(f);
}

TEST(options_that_are_wrong)
{
	unsetenv("KUBERNETES_SERVICE_HOST");
	refused("is not an https://", "server", "ftp://x", NULL, NULL);
	refused("is not an https://", "server", "nonsense:///", NULL, NULL);
	refused("no user", "server", "https://a:b@x", NULL, NULL);
	refused("exclude each other", "server", "https://x", "kubeconfig", "/x");
	refused("is not https", "server", "http://10.0.0.1:80", "token_file", "/dev/null");
	refused("is not https", "server", "http://127.example.com", "token_file", "/dev/null");
	refused("is not https", "server", "http://127.0.0.1.example.com", "token_file",
		"/dev/null");
	refused("need 'server'", "token_file", "/dev/null", NULL, NULL);
	refused("exclude each other", "server", "https://x", "kubelet", "https://y");
	refused("is for 'kubelet' alone", "server", "https://x", "insecure", "true");
	refused("is not https", "kubelet", "http://10.0.0.1:80", "token_file", "/dev/null");
	refused("a key is empty", "server", "https://x", "labels", "a,,b");
	refused("'workload-kind' would become 'workload_kind'", "server", "https://x", "labels",
		"team,workload-kind");
	refused("'a.b' and 'a/b' would both become 'a_b'", "labels", "a.b", "annotations", "x,a/b");
	refused("more than 24 keys", "labels", "a,b,c,d,e,f,g,h,i,j,k,l,m", "annotations",
		"n,o,p,q,r,s,t,u,v,w,x,y");
}

/* With no discovery in the script all are used, on machines without Kubernetes too. */
TEST(no_pod_of_a_cluster)
{
	struct fake *f;

	unsetenv("KUBERNETES_SERVICE_HOST");
	f = begun(fake_new(&fusee_plugin, NULL));
	CHECK_INT(fake_start(f), 0);
	CHECK_INT(f->commits, 1);
	CHECK_INT(f->nwatches, 0);
	fake_free(f);
}

TEST(a_server_that_is_not_there)
{
	struct fake *f = begun(fake_new(&fusee_plugin, "server", "http://127.0.0.1:1", NULL));

	CHECK_INT(fake_start(f), 0);
	LOG_COMES(f, "no answer from 'http://127.0.0.1:1': Connection refused");
	CHECK(fake_logged(f, "pods have no labels until it works"));
	CHECK_INT(f->commits, 0);
	CHECK(fake_count(f, "failures") >= 1);
	CHECK(fake_count(f, "requests{status=\"none\"}") >= 1);
	fake_free(f);
}

TEST(a_pod_without_its_token)
{
	struct fake *f;

	setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1", 1);
	setenv("KUBERNETES_SERVICE_PORT", "1", 1);
	f = begun(fake_new(&fusee_plugin, "token_file", "/nonexistent/token", NULL));
	CHECK_INT(fake_start(f), 0);
	LOG_COMES(f, "cannot read '/nonexistent/token': No such file");
	fake_free(f);
	unsetenv("KUBERNETES_SERVICE_HOST");
}
