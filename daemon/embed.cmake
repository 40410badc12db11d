# cmake -DIN=FILE -DOUT=FILE.c -P embed.cmake: the status page as an array of mrcd_status.h
file(READ ${IN} bytes HEX)
string(REGEX REPLACE "(..)" "0x\\1," bytes "${bytes}")
string(REGEX REPLACE "(................................................................................)" "\\1\n" bytes "${bytes}")
file(WRITE ${OUT} "/* made from mrcd_status.html */\n#include \"mrcd_status.h\"\n\n"
	"const unsigned char mrcd_status_page[] = {\n${bytes}\n};\n"
	"const size_t mrcd_status_page_bytes = sizeof(mrcd_status_page);\n")
