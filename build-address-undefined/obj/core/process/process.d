build-address-undefined/obj/core/process/process.o: \
 core/process/process.c core/process/process.h core/base/table.h
core/process/process.h:
core/base/table.h:
