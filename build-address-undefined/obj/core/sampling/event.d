build-address-undefined/obj/core/sampling/event.o: core/sampling/event.c \
 core/sampling/event.h core/sampling/snapshot.h core/process/procfs.h
core/sampling/event.h:
core/sampling/snapshot.h:
core/process/procfs.h:
