/* SPDX-License-Identifier: Apache-2.0 */
/* Opens an address in the user's browser. */
#ifndef UI_BROWSER_H
#define UI_BROWSER_H

/* Starts xdg-open and does not wait for it. 0; -ENOTSUP: there is no desktop, or it is another
 * user's; or -errno. */
int browser_open(const char *address);
#endif
