/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LIB_STR_H
#define LIB_STR_H

#include <string.h>

#include <fusee/plugin.h>

static inline struct fusee_str str(const char *s)
{
	return (struct fusee_str){s, strlen(s)};
}
#endif
