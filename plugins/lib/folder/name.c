/* SPDX-License-Identifier: Apache-2.0 */
/* Names of files, TIME-..-ID, which contain the start of their window. */
#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <fusee/folder.h>

static bool is_plain(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '.' || c == '_' || c == '-';
}

void fusee_folder_plain(char *to, size_t size, struct fusee_str text)
{
	fusee_text_copy(to, size, text);
	for (uint64_t i = 0; i < text.len && i + 1 < size; i++)
		to[i] = is_plain(text.p[i]) ? text.p[i] : '_';
}

void fusee_folder_put_time(char to[FUSEE_FOLDER_TIME + 1], uint64_t ns)
{
	time_t t = (time_t)(ns / FUSEE_SECOND);
	char text[32];
	struct tm tm;

	gmtime_r(&t, &tm);
	strftime(text, sizeof(text), "%Y-%m-%dT%H-%M-%SZ", &tm);
	snprintf(to, FUSEE_FOLDER_TIME + 1, "%.*s", FUSEE_FOLDER_TIME, text);
}

void fusee_folder_put_id(char to[FUSEE_FOLDER_ID + 1], const struct fusee_profile *p)
{
	for (int i = 0; i < FUSEE_FOLDER_ID / 2; i++)
		snprintf(to + 2 * i, 3, "%02x", p->id[i]);
}

bool fusee_folder_has_shape(const char *s, const char *shape)
{
	for (; *shape; s++, shape++)
		if (*shape == '0' ? *s < '0' || *s > '9' : *s != *shape)
			return false;
	return true;
}

bool fusee_folder_read_time(const char *text, uint64_t *ns)
{
	struct tm tm = {0};
	int64_t t;

	if (!fusee_folder_has_shape(text, "0000-00-00T00-00-00Z") ||
	    !strptime(text, "%Y-%m-%dT%H-%M-%SZ", &tm))
		return false;
	t = timegm(&tm);
	*ns = t > 0 ? (uint64_t)t * FUSEE_SECOND : 0;
	return true;
}

bool fusee_folder_is_name(const char *name, size_t body, uint64_t *ns)
{
	if (body < FUSEE_FOLDER_TIME + 1 + 1 + FUSEE_FOLDER_ID)
		return false;
	for (size_t i = 0; i < body; i++)
		if (!is_plain(name[i]))
			return false;
	return fusee_folder_read_time(name, ns) && name[FUSEE_FOLDER_TIME] == '-' &&
	       name[body - FUSEE_FOLDER_ID - 1] == '-' &&
	       strspn(name + body - FUSEE_FOLDER_ID, "0123456789abcdef") >= FUSEE_FOLDER_ID;
}

DIR *fusee_folder_list(int dir)
{
	int copy = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = copy < 0 ? NULL : fdopendir(copy);

	if (!d && copy >= 0)
		close(copy);
	return d;
}
