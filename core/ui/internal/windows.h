/* SPDX-License-Identifier: Apache-2.0 */
/* The files of the page as a store: each is a window. */
#ifndef UI_WINDOWS_H
#define UI_WINDOWS_H

#include "query/store.h"
#include "ui/internal/files.h"

int ui_windows_open(struct store **ret, struct ui_files *); /* borrows the files; 0 or -ENOMEM */
#endif
