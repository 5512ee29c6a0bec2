/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Standard libraries and run times are recognized by the names that their languages reserve: Java's
 * packages, the packages of Go without a domain, and by where they are installed.
 */
#include "report/internal/runtimes.h"

#include <string.h>

#include "base/str.h"

static const char java_packages[] = "java. javax. jdk. sun. kotlin. kotlinx. scala.";

/* The first elements of the paths of Go's own packages. */
static const char go_packages[] =
	"archive bufio bytes compress container context crypto database debug embed encoding "
	"errors expvar flag fmt go hash html image index internal io iter log maps math mime "
	"net os path plugin reflect regexp runtime slices sort strconv strings sync syscall "
	"testing text time unicode unique vendor weak";

/* Files of virtual machines. "python3.11" is one, "pythonic" is not. */
static const char machines[] =
	"libjvm.so libjava.so libnio.so libnet.so libzip.so libpython python libruby ruby "
	"libnode.so node";

/* Folders in which interpreted languages keep their standard libraries, and their packages. */
static const struct {
	const char *library, *packages;
} folders[] = {
	{"/lib/python", "-packages/"},
	{"/lib/ruby/", "/gems/"},
	{"node:", NULL},
	{"<frozen ", NULL},
};

static const char waiting[] =
	"jdk.internal.misc.Unsafe. sun.misc.Unsafe. java.util.concurrent.locks. "
	"java.lang.Object.wait os:: Monitor:: Mutex:: ObjectMonitor:: Parker:: runtime.futex "
	"runtime.note runtime.lock runtime.mPark runtime.stopm runtime.usleep "
	"runtime.osyield internal/ syscall. runtime/internal/";

/* Does the name begin with a word of the list, behind which it ends or has one of these characters?
 * next NULL: whatever follows. */
static bool begins_with(struct fusee_str name, const char *list, const char *next)
{
	for (size_t n; *list; list += n + (list[n] == ' ')) {
		n = strcspn(list, " ");
		if (n <= name.len && !memcmp(list, name.p, n) &&
		    (!next || n == name.len || strchr(next, name.p[n])))
			return true;
	}
	return false;
}

static bool ends(struct fusee_str s, const char *end)
{
	size_t n = strlen(end);

	return s.len >= n && !memcmp(s.p + s.len - n, end, n);
}

static bool has(struct fusee_str s, const char *part)
{
	return memmem(s.p, s.len, part, strlen(part)) != NULL;
}

/* "sync/atomic.(*Int64).Add" is sync's. The file excludes C's "time.constprop.0". */
static bool is_gos(const struct render_function *f)
{
	return (ends(f->file, ".go") || ends(f->file, ".s")) &&
	       (begins_with(f->name, go_packages, "/.") ||
		str_begins(f->name, "golang.org/x/sys/"));
}

static bool is_javas(const struct render_function *f)
{
	return (f->code == RENDER_RUNTIME || f->code == RENDER_LANGUAGE) &&
	       begins_with(f->name, java_packages, NULL);
}

static bool is_in_folder(struct fusee_str file)
{
	for (size_t i = 0; i < sizeof(folders) / sizeof(*folders); i++)
		if (has(file, folders[i].library) &&
		    !(folders[i].packages && has(file, folders[i].packages)))
			return true;
	return false;
}

static bool is_machines(const struct render_function *f)
{
	return begins_with(str_base_name(f->library), machines, ".0123456789") ||
	       has(f->library, "/lib-dynload/");
}

/* Code that the JVM makes for itself: "_new_instance_Java". */
static bool is_stub(const struct render_function *f)
{
	return (f->code == RENDER_RUNTIME || f->code == RENDER_LANGUAGE) && !f->file.len &&
	       ends(f->name, "_Java");
}

enum render_origin render_origin(const struct render_function *f)
{
	if (is_machines(f) || is_stub(f))
		return RENDER_MACHINE;
	return is_gos(f) || is_javas(f) || is_in_folder(f->file) || str_begins(f->name, "std::") ||
			       str_begins(f->file, "/rustc/")
		       ? RENDER_STANDARD
		       : RENDER_OWN;
}

bool render_only_waits(const struct render_function *f)
{
	return begins_with(f->name, waiting, NULL);
}
