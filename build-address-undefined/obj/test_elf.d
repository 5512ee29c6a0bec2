build-address-undefined/obj/test_elf.o: tests/unit/test_elf.c \
 core/process/elf.h include/fusee/plugin.h include/fusee/profile.h \
 tests/test.h
core/process/elf.h:
include/fusee/plugin.h:
include/fusee/profile.h:
tests/test.h:
