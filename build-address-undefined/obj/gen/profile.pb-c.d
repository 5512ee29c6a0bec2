build-address-undefined/obj/gen/profile.pb-c.o: \
 build-address-undefined/gen/profile.pb-c.c \
 build-address-undefined/gen/profile.pb-c.h
build-address-undefined/gen/profile.pb-c.h:
