-- Creates more databases that mint. Makes databases as copies of one database, and mints once in each database.
SELECT format('CREATE DATABASE many_%s TEMPLATE many_0', i) FROM generate_series(:first, :last) AS i \gexec
