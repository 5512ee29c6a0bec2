/* SPDX-License-Identifier: Apache-2.0 */
/* The secret in the page's address: http://127.0.0.1:PORT/TOKEN/. Another user of the machine can
 * connect to loopback, but does not know it. */
#ifndef UI_ADDRESS_H
#define UI_ADDRESS_H

#include <stdbool.h>

#define UI_TOKEN_BYTES 24
#define UI_TOKEN (2 * UI_TOKEN_BYTES + 1)

struct ui_address {
	char token[UI_TOKEN];
	/* For the browser that fusee starts, whose command line other users can read: it leads to
	 * the token's address, once. Empty: it was used. */
	char ticket[UI_TOKEN];
};

int ui_address_make(struct ui_address *); /* 0 or -errno */
/* Whether the path begins with the token, or is the ticket that was not used. */
bool ui_address_permits(const struct ui_address *, const char *path);
#endif
