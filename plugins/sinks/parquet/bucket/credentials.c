/* SPDX-License-Identifier: Apache-2.0 */
#include "credentials.h"

#include <stdlib.h>

#include <fusee/http.h>

#define BLANKS " \t\r"

static int refuse(char why[FUSEE_HTTP_WHY], int err, const char *format, const char *of)
{
	snprintf(why, FUSEE_HTTP_WHY, format, of);
	return err;
}

/* -EINVAL: too long, or not fit for a header. */
static int set(char *to, size_t size, const char *text)
{
	if (strlen(text) >= size || !fusee_http_is_value(fusee_text(text)))
		return -EINVAL;
	memcpy(to, text, strlen(text) + 1);
	return 0;
}

static const char *variable(const char *name)
{
	const char *text = getenv(name);

	return text ? text : "";
}

static int from_environment(struct credentials *c, char why[FUSEE_HTTP_WHY])
{
	const char *id = variable("AWS_ACCESS_KEY_ID"), *secret = variable("AWS_SECRET_ACCESS_KEY");

	if (!*id || !*secret)
		return refuse(why, -ENOENT,
			      "no keys for the bucket: set AWS_ACCESS_KEY_ID and "
			      "AWS_SECRET_ACCESS_KEY, or '%s'",
			      "credentials_file");
	if (set(c->id, sizeof(c->id), id) || set(c->secret, sizeof(c->secret), secret) ||
	    set(c->token, sizeof(c->token), variable("AWS_SESSION_TOKEN")))
		return refuse(why, -EINVAL, "%s of the environment are too long for keys",
			      "AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY or AWS_SESSION_TOKEN");
	return 0;
}

/* ---- a file ---- */

/* Removes blanks around the text, in place. */
static char *trim(char *s)
{
	size_t n;

	s += strspn(s, BLANKS);
	n = strlen(s);
	while (n && strchr(BLANKS, s[n - 1]))
		n--;
	s[n] = '\0';
	return s;
}

static int take_line(struct credentials *c, char *line)
{
	char *equals = strchr(line, '='), *name, *value;

	if (!equals)
		return 0;
	*equals = '\0';
	name = trim(line);
	value = trim(equals + 1);
	if (!strcmp(name, "aws_access_key_id"))
		return set(c->id, sizeof(c->id), value);
	if (!strcmp(name, "aws_secret_access_key"))
		return set(c->secret, sizeof(c->secret), value);
	if (!strcmp(name, "aws_session_token"))
		return set(c->token, sizeof(c->token), value);
	return 0;
}

/* Lines before the first section count, too. */
static int take_lines(struct credentials *c, char *text, const char *profile)
{
	bool here = true;
	char *line;
	int r = 0;

	while (!r && (line = strsep(&text, "\n"))) {
		line = trim(line);
		if (*line == '[') {
			line[strcspn(line, "]")] = '\0';
			here = !strcmp(trim(line + 1), profile);
		} else if (here && *line != '#' && *line != ';') {
			r = take_line(c, line);
		}
	}
	return r;
}

static int from_file(struct credentials *c, const struct fusee_self *self, const char *file,
		     char why[FUSEE_HTTP_WHY])
{
	char text[FUSEE_HTTP_SECRET];
	const char *profile = variable("AWS_PROFILE");
	int n = self->host->read_secret(self->in, file, text, sizeof(text)), r;

	if (n < 0) {
		snprintf(why, FUSEE_HTTP_WHY, "cannot read '%.160s': %s", file, strerror(-n));
		return n;
	}
	profile = *profile ? profile : "default";
	r = take_lines(c, text, profile);
	explicit_bzero(text, sizeof(text));
	if (r)
		return refuse(why, r, "a key in '%.160s' is too long, or no text", file);
	if (*c->id && *c->secret)
		return 0;
	snprintf(why, FUSEE_HTTP_WHY,
		 "no aws_access_key_id and aws_secret_access_key of [%.40s] in '%.120s'", profile,
		 file);
	return -ENOENT;
}

int credentials_read(struct credentials *c, const struct fusee_self *self, const char *file,
		     char why[FUSEE_HTTP_WHY])
{
	int r;

	memset(c, 0, sizeof(*c));
	r = *file ? from_file(c, self, file, why) : from_environment(c, why);
	if (r)
		credentials_clear(c);
	return r;
}

void credentials_clear(struct credentials *c)
{
	explicit_bzero(c, sizeof(*c));
}
