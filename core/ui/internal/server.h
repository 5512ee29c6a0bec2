/* SPDX-License-Identifier: Apache-2.0 */
/* The server of the page, on a loop. */
#ifndef UI_SERVER_H
#define UI_SERVER_H

#include "net/http.h"
#include "net/loop.h"
#include "ui/internal/address.h"
#include "ui/internal/models.h"
#include "ui/internal/profiles.h"

#define UI_IDLE_NS 15000000000ull /* after the last page was closed */

struct ui_server {
	struct loop *loop;
	struct http *http;
	struct http_page *pages; /* ends with {0} */
	char *paths;             /* of the pages */
	struct ui_address address;
	struct ui_profiles profiles;
	struct ui_models models; /* of profiles whose number of changes is: */
	uint64_t models_at;
	const char *listen;
	bool live;               /* the page shows what is new */
	uint32_t shown;          /* pages that are open now */
	struct loop_timer *idle; /* runs while none is, once one was */
};

/* Begins to answer; the profiles are those of the caller, which sets `loop`, `profiles`,
 * `listen` and `live`. 0 or -errno, with one malloc'ed sentence in *text (NULL: no memory). */
int ui_server_open(struct ui_server *, char **text);
void ui_server_close(struct ui_server *);
#endif
