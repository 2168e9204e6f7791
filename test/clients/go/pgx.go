// Tests that the Go driver pgx returns each id as an int64 without rounding.
package main

import (
	"context"
	"fmt"
	"log"
	"reflect"
	"strconv"

	"github.com/jackc/pgx/v4"
)

var count = 0

func equal(found, expected interface{}, what string) {
	count++
	if reflect.DeepEqual(found, expected) {
		fmt.Printf("ok %d - %s\n", count, what)
	} else {
		fmt.Printf("not ok %d - %s\n# found: %.500s\n", count, what, fmt.Sprint(found, " instead of ", expected))
	}
}

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func main() {
	ctx := context.Background()
	db, err := pgx.Connect(ctx, "")
	must(err)
	_, err = db.Exec(ctx, "CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT snowflake.next_id(5), caption text)")
	must(err)
	var id int64
	must(db.QueryRow(ctx, "INSERT INTO photos (caption) VALUES ($1) RETURNING id", "first light").Scan(&id))
	var caption string
	must(db.QueryRow(ctx, "SELECT caption FROM photos WHERE id = $1", id).Scan(&caption))
	equal(caption, "first light", "RETURNING id, and the id as a parameter")

	captions := make([][]interface{}, 1000)
	for row := range captions {
		captions[row] = []interface{}{"copied"}
	}
	copied, err := db.CopyFrom(ctx, pgx.Identifier{"photos"}, []string{"caption"}, pgx.CopyFromRows(captions))
	must(err)
	equal(copied, int64(1000), "CopyFrom")

	rows, err := db.Query(ctx, "SELECT id, id::text FROM photos ORDER BY photos.id")
	must(err)
	var ids, texts []string
	for rows.Next() {
		var id int64
		var text string
		must(rows.Scan(&id, &text))
		ids, texts = append(ids, strconv.FormatInt(id, 10)), append(texts, text)
	}
	equal(len(ids), 1001, "all are there")
	equal(ids, texts, "1,001 ids")
	var shard int64
	must(db.QueryRow(ctx, "SELECT snowflake.shard_of(snowflake.next_id($1))", int64(7)).Scan(&shard))
	equal(shard, int64(7), "an int64 as the shard")
	fmt.Printf("1..%d\n", count)
}
