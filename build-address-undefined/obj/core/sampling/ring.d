build-address-undefined/obj/core/sampling/ring.o: core/sampling/ring.c \
 core/sampling/ring.h
core/sampling/ring.h:
