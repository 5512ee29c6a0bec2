/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fusee/json.h - for plugins that read JSON. Optional: a plugin links it statically
 * (libfusee-json.a, `pkg-config --libs fusee-json`; in fusee's own tree the plugin's file `uses`
 * has the line "json").
 *
 * A parser that reports values as they come, such as yajl, does not report the place of a value.
 * Here a place is a state: a table of edges gives the state of a value by its key and the state of
 * the array or object around it. A value that no edge leads to has the state 0 and is ignored.
 */
#ifndef FUSEE_JSON_H
#define FUSEE_JSON_H

#include <stdbool.h>
#include <stddef.h>

#include <fusee/profile.h>

#ifdef __cplusplus
extern "C" {
#endif

#define FUSEE_JSON_IGNORED 0 /* the state of a value that no edge leads to */
#define FUSEE_JSON_TOP 1     /* the state of the outermost value */
#define FUSEE_JSON_DEPTH 64u /* arrays and objects in each other, at most */

/* key NULL: an array's items; "": any key. The first edge that fits counts. */
struct fusee_json_edge {
	uint8_t from, to;
	const char *key;
};

/* Where a parser is in its text. Zeroed but for the edges, which are borrowed. */
struct fusee_json_place {
	const struct fusee_json_edge *edges;
	uint32_t nedges;
	uint8_t states[FUSEE_JSON_DEPTH]; /* of the arrays and objects around, from the outermost */
	bool arrays[FUSEE_JSON_DEPTH];
	uint32_t depth;
	uint8_t next; /* the state of the value after a key */
};

/* The state of the value that is reported now, before fusee_json_enter() if it is an array or
 * object. */
uint8_t fusee_json_state(const struct fusee_json_place *);
/* An array or object begins. false: it is too deep. */
bool fusee_json_enter(struct fusee_json_place *, bool array);
/* It ends: its state. */
uint8_t fusee_json_leave(struct fusee_json_place *);
/* A key of the innermost object. */
void fusee_json_key(struct fusee_json_place *, const char *key, size_t n);

/* The first text with this state, terminated and truncated to size. The JSON may be incomplete or
 * invalid behind it. false: there is none, *to is "". */
bool fusee_json_text(struct fusee_str json, const struct fusee_json_edge *edges, uint32_t nedges,
		     uint8_t state, char *to, size_t size);
/* The same for the member `key` of the outermost object. */
bool fusee_json_member(struct fusee_str json, const char *key, char *to, size_t size);

#ifdef __cplusplus
}
#endif
#endif
