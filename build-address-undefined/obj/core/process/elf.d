build-address-undefined/obj/core/process/elf.o: core/process/elf.c \
 core/process/elf_internal.h core/process/elf.h include/fusee/plugin.h \
 include/fusee/profile.h
core/process/elf_internal.h:
core/process/elf.h:
include/fusee/plugin.h:
include/fusee/profile.h:
