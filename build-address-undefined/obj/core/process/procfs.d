build-address-undefined/obj/core/process/procfs.o: core/process/procfs.c \
 core/process/procfs.h
core/process/procfs.h:
