// SPDX-License-Identifier: Apache-2.0
#include "process/elf_note.h"

#include <elf.h>
#include <string.h>

uint32_t elf_note_build_id(const char *notes, uint64_t len, uint64_t align, const char **id)
{
	uint64_t at = 0;

	while (at <= len && len - at >= sizeof(Elf64_Nhdr)) {
		Elf64_Nhdr note;
		uint64_t name, desc;

		memcpy(&note, notes + at, sizeof(note));
		name = at + sizeof(note);
		desc = name + (((uint64_t)note.n_namesz + align - 1) & -align);
		if (desc > len || note.n_descsz > len - desc)
			return 0;
		if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 &&
		    !memcmp(notes + name, "GNU", 4) && note.n_descsz &&
		    note.n_descsz <= ELF_BUILD_ID_MAX) {
			*id = notes + desc;
			return note.n_descsz;
		}
		at = desc + (((uint64_t)note.n_descsz + align - 1) & -align);
	}
	return 0;
}
