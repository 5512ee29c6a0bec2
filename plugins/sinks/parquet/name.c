/* SPDX-License-Identifier: Apache-2.0 */
#include "name.h"

#define END ".parquet"
#define MERGED ".merged" END
#define MERGED_BODY 48 /* 2026-11-21T08-00-00Z-T08-59-50Z-0123456789abcdef */
#define MAX_HOST 60

void name_make(char name[NAME_SIZE], const struct fusee_profile *p)
{
	const struct fusee_label *l = fusee_find_label(p->resource, "host");
	char when[FUSEE_FOLDER_TIME + 1], host[MAX_HOST + 1], id[FUSEE_FOLDER_ID + 1];

	fusee_folder_put_time(when, p->start_ns);
	fusee_folder_plain(host, sizeof(host), l ? l->str : fusee_text("host"));
	fusee_folder_put_id(id, p);
	snprintf(name, NAME_SIZE, "%s-%s-%s" END, when, host, id);
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

/* When the last window of a merged file began: its date is that of the first. */
static uint64_t last_of(const char *name)
{
	char when[FUSEE_FOLDER_TIME + 1];
	uint64_t ns = 0;

	snprintf(when, sizeof(when), "%.10s%.10s", name, name + FUSEE_FOLDER_TIME + 1);
	fusee_folder_read_time(when, &ns);
	return ns;
}

/* The length of a name before its suffix; 0: another suffix. */
static size_t body_of(const char *name)
{
	size_t len = strlen(name);
	bool merged = name_is_merged(name);

	if (len >= NAME_SIZE ||
	    len < FUSEE_FOLDER_TIME + 1 + 1 + 1 + FUSEE_FOLDER_ID + strlen(END) ||
	    strcmp(name + len - strlen(END), END))
		return 0;
	len -= merged ? strlen(MERGED) : strlen(END);
	if (merged && (len != MERGED_BODY ||
		       !fusee_folder_has_shape(name + FUSEE_FOLDER_TIME, "-T00-00-00Z-")))
		return 0;
	return len;
}

bool name_is_ours(const char *name, uint64_t *ns)
{
	uint64_t t;

	if (!fusee_folder_is_name(name, body_of(name), &t))
		return false;
	if (ns)
		*ns = name_is_merged(name) ? last_of(name) : t;
	return true;
}

void name_partition(const char *name, struct partition *p)
{
	snprintf(p->date, sizeof(p->date), "date=%.10s", name);
	snprintf(p->hour, sizeof(p->hour), "hour=%.2s", name + 11);
}

bool name_is_date(const char *s)
{
	return strlen(s) == 15 && fusee_folder_has_shape(s, "date=0000-00-00");
}

bool name_is_hour(const char *s)
{
	return strlen(s) == 7 && fusee_folder_has_shape(s, "hour=00");
}

void name_hour(char hour[HOUR_SIZE], const struct partition *p)
{
	snprintf(hour, HOUR_SIZE, "%.10sT%.2s", p->date + 5, p->hour + 5);
}

bool name_parse_hour(const char *hour, struct partition *p)
{
	if (strlen(hour) != 13 || !fusee_folder_has_shape(hour, "0000-00-00T00"))
		return false;
	name_partition(hour, p);
	return true;
}

uint64_t name_begin(const struct partition *p)
{
	char hour[HOUR_SIZE], when[FUSEE_FOLDER_TIME + 1];
	uint64_t ns = 0;

	name_hour(hour, p);
	snprintf(when, sizeof(when), "%.13s-00-00Z", hour);
	fusee_folder_read_time(when, &ns);
	return ns;
}
