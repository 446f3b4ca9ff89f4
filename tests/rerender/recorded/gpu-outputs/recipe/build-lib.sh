echo ${openssl}
"$zlib" $mpich
