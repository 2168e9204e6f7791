-- Creates more databases that mint. Each database is a copy, and mints once.
SELECT format('CREATE DATABASE many_%s TEMPLATE many_0', i) FROM generate_series(:first, :last) AS i \gexec
