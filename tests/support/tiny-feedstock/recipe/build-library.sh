mkdir -p "$PREFIX/share/tiny"
cp answer.txt "$PREFIX/share/tiny/"
