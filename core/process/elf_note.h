/* SPDX-License-Identifier: Apache-2.0 */
/* The build ID in ELF notes. */
#ifndef PROCESS_ELF_NOTE_H
#define PROCESS_ELF_NOTE_H

#include <stdint.h>

#define ELF_BUILD_ID_MAX 64u /* bytes */

/* Finds NT_GNU_BUILD_ID in len bytes of notes, aligned to 4 or 8. *id points into them. Returns the
 * build ID's bytes, at most ELF_BUILD_ID_MAX; 0: none, or the notes are malformed before it. */
uint32_t elf_note_build_id(const char *notes, uint64_t len, uint64_t align, const char **id);
#endif
