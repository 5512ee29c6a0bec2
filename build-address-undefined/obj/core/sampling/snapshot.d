build-address-undefined/obj/core/sampling/snapshot.o: \
 core/sampling/snapshot.c core/sampling/snapshot.h core/process/procfs.h \
 core/base/table.h core/sampling/event.h core/sampling/ring.h
core/sampling/snapshot.h:
core/process/procfs.h:
core/base/table.h:
core/sampling/event.h:
core/sampling/ring.h:
