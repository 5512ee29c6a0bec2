build-address-undefined/obj/core/process/elf_symbol.o: \
 core/process/elf_symbol.c core/process/elf_internal.h core/process/elf.h \
 include/fusee/plugin.h include/fusee/profile.h
core/process/elf_internal.h:
core/process/elf.h:
include/fusee/plugin.h:
include/fusee/profile.h:
