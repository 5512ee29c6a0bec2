/* SPDX-License-Identifier: Apache-2.0 */
#include "name.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#define END ".parquet"
#define MERGED ".merged" END
#define MERGED_BODY 48 /* 2026-11-21T08-00-00Z-T08-59-50Z-0123456789abcdef */
#define MAX_HOST 60
#define TIME 20 /* 2026-11-21T08-15-00Z */
#define ID 16

static bool plain(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '.' || c == '_' || c == '-';
}

void name_make(char name[NAME_SIZE], const struct fusee_profile *p)
{
	const struct fusee_label *l = fusee_find_label(p->resource, "host");
	char when[32], host[MAX_HOST + 1] = "host", id[ID + 1];
	time_t t = (time_t)(p->start_ns / FUSEE_SECOND);
	struct tm tm;

	gmtime_r(&t, &tm);
	strftime(when, sizeof(when), "%Y-%m-%dT%H-%M-%SZ", &tm);
	for (uint64_t i = 0; l && i < l->str.len && i < MAX_HOST; i++) {
		host[i] = plain(l->str.p[i]) ? l->str.p[i] : '_';
		host[i + 1] = '\0';
	}
	for (int i = 0; i < ID / 2; i++)
		snprintf(id + 2 * i, 3, "%02x", p->id[i]);
	snprintf(name, NAME_SIZE, "%.20s-%s-%s" END, when, host, id);
}

/* In `shape` a '0' is any digit. */
static bool has_shape(const char *s, const char *shape)
{
	for (; *shape; s++, shape++)
		if (*shape == '0' ? *s < '0' || *s > '9' : *s != *shape)
			return false;
	return true;
}

void name_merged(char name[NAME_SIZE], const char *first, const char *last, uint64_t hash)
{
	snprintf(name, NAME_SIZE, "%.20s-%.10s-%016llx" MERGED, first, last + 10,
		 (unsigned long long)hash);
}

bool name_is_merged(const char *name)
{
	size_t len = strlen(name);

	return len > strlen(MERGED) && !strcmp(name + len - strlen(MERGED), MERGED);
}

static uint64_t time_of(const char *when, const char *format)
{
	struct tm tm = {0};
	int64_t t = strptime(when, format, &tm) ? timegm(&tm) : -1;

	return t > 0 ? (uint64_t)t * FUSEE_SECOND : 0;
}

/* When the last window of a merged file began: its date is that of the first. */
static uint64_t last_of(const char *name)
{
	char when[32];

	snprintf(when, sizeof(when), "%.10s%.10s", name, name + TIME + 1);
	return time_of(when, "%Y-%m-%dT%H-%M-%SZ");
}

/* What is before the end of a name: its length, or 0. */
static size_t body_of(const char *name)
{
	size_t len = strlen(name);
	bool merged = name_is_merged(name);

	if (len >= NAME_SIZE || len < TIME + 1 + 1 + 1 + ID + strlen(END) ||
	    strcmp(name + len - strlen(END), END))
		return 0;
	len -= merged ? strlen(MERGED) : strlen(END);
	if (merged && (len != MERGED_BODY || !has_shape(name + TIME, "-T00-00-00Z-")))
		return 0;
	return len;
}

bool name_is_ours(const char *name, uint64_t *ns)
{
	size_t body = body_of(name);
	struct tm tm = {0};
	int64_t t;

	for (size_t i = 0; i < body; i++)
		if (!plain(name[i]))
			return false;
	if (!body || name[body - ID - 1] != '-' ||
	    strspn(name + body - ID, "0123456789abcdef") < ID ||
	    !has_shape(name, "0000-00-00T00-00-00Z-") || !strptime(name, "%Y-%m-%dT%H-%M-%SZ", &tm))
		return false;
	t = timegm(&tm);
	if (ns)
		*ns = name_is_merged(name) ? last_of(name) : t > 0 ? (uint64_t)t * FUSEE_SECOND : 0;
	return true;
}

void name_partition(const char *name, struct partition *p)
{
	snprintf(p->date, sizeof(p->date), "date=%.10s", name);
	snprintf(p->hour, sizeof(p->hour), "hour=%.2s", name + 11);
}

bool name_is_date(const char *s)
{
	return strlen(s) == 15 && has_shape(s, "date=0000-00-00");
}

bool name_is_hour(const char *s)
{
	return strlen(s) == 7 && has_shape(s, "hour=00");
}

void name_hour(char hour[HOUR_SIZE], const struct partition *p)
{
	snprintf(hour, HOUR_SIZE, "%.10sT%.2s", p->date + 5, p->hour + 5);
}

bool name_parse_hour(const char *hour, struct partition *p)
{
	if (strlen(hour) != 13 || !has_shape(hour, "0000-00-00T00"))
		return false;
	name_partition(hour, p);
	return true;
}

uint64_t name_begin(const struct partition *p)
{
	char hour[HOUR_SIZE];

	name_hour(hour, p);
	return time_of(hour, "%Y-%m-%dT%H");
}
