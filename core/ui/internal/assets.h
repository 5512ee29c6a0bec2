/* SPDX-License-Identifier: Apache-2.0 */
/* The files of the page, which are embedded. */
#ifndef UI_ASSETS_H
#define UI_ASSETS_H

#include <fusee/profile.h>

struct ui_asset {
	const char *name; /* "" is the page itself */
	const char *type;
	const char *text, *end; /* NULL: render_flamegraph_file() has it */
};

extern const struct ui_asset ui_assets[]; /* ends with {0} */
struct fusee_str ui_asset_text(const struct ui_asset *);
#endif
