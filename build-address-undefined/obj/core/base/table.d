build-address-undefined/obj/core/base/table.o: core/base/table.c \
 core/base/table.h
core/base/table.h:
