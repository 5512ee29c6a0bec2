/* SPDX-License-Identifier: Apache-2.0 */
/* Reads of files that may shrink meanwhile: they are not mapped, as that would be a SIGBUS. [any
 * thread]
 */
#ifndef BASE_PREAD_H
#define BASE_PREAD_H

#include <stdint.h>

/* Reads len bytes at offset `at`. 0; -EBADMSG: the file ends before; or -errno. */
int pread_all(int fd, void *to, uint64_t len, uint64_t at);
#endif
