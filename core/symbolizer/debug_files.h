/* SPDX-License-Identifier: Apache-2.0 */
/* How often files and debug files were not opened in time. For one thread. */
#ifndef SYMBOLIZER_DEBUG_FILES_H
#define SYMBOLIZER_DEBUG_FILES_H

#include <stdint.h>

/* Of all requests for symbols since the program started. */
uint64_t debug_files_late(void);
#endif
