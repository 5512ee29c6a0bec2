/* SPDX-License-Identifier: Apache-2.0 */
/* Members of an agent's answer: "", 0, false or NULL where one is missing or of another type. */
#ifndef CTL_MEMBERS_H
#define CTL_MEMBERS_H

#include <json-c/json.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

const char *text_of(struct json_object *, const char *name);
uint64_t number_of(struct json_object *, const char *name); /* 0: negative */
double real_of(struct json_object *, const char *name);
bool bool_of(struct json_object *, const char *name);
struct json_object *list_of(struct json_object *, const char *name);
size_t length_of(struct json_object *list); /* NULL: 0 */
#endif
