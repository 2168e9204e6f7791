"""Tests a server default that mints with SQLAlchemy, in the ORM and for bulk inserts."""
from sqlalchemy import BigInteger, Column, ForeignKey, Integer, Text, __version__, create_engine, event, func, select, text
from sqlalchemy.orm import Session, declarative_base

from tap import done, equal, ok

Base = declarative_base()


class Photo(Base):
    __tablename__ = "photos"
    id = Column(BigInteger, primary_key=True, server_default=text("snowflake.next_id(5)"))
    caption = Column(Text)


class Upload(Base):
    __tablename__ = "uploads"
    id = Column(BigInteger, primary_key=True)
    caption = Column(Text)


def with_ids(session, objects, shard=5):
    """Sets the ids of new objects, which one call to the database mints."""
    ids = session.scalars(select(func.unnest(func.snowflake.next_ids(shard, len(objects))))).all()
    for object, id in zip(objects, ids):
        object.id = id
    return objects


engine = create_engine("postgresql+psycopg2://", future=True)
inserts = []
event.listen(engine, "before_cursor_execute",
             lambda conn, cursor, statement, *rest: inserts.append(statement) if statement.startswith("INSERT") else None)
Base.metadata.create_all(engine)


def as_text(table="photos"):
    with engine.connect() as connection:
        return [id for id, in connection.execute(text(f"SELECT id::text FROM {table} ORDER BY id"))]


with Session(engine) as session:
    photo = Photo(caption="first light")
    session.add(photo)
    session.commit()
    equal([str(photo.id)], as_text(), "the id of an object that was flushed")
    id = photo.id
with Session(engine) as session:
    equal(session.get(Photo, id).caption, "first light", "get() by id")

    inserts.clear()
    photos = [Photo(caption="many") for _ in range(1000)]
    session.add_all(photos)
    session.commit()
    equal(sorted([str(photo.id) for photo in photos] + [str(id)], key=int), as_text(), "1,000 objects in a flush")

    equal(len(inserts), 1 if __version__ < "2" else 1000, "INSERTs: one, and 1,000 since 2.0")

    inserts.clear()
    uploads = with_ids(session, [Upload(caption="many") for _ in range(500)])
    session.add_all(uploads)
    session.commit()
    equal([str(upload.id) for upload in uploads], as_text("uploads"), "ids from next_ids(), in the order of the objects")
    ok(len(inserts) == 1, "in one INSERT", len(inserts))


# Tests adopt() on an application whose primary keys had the type Integer. The application's models in Python stay
# unchanged.
class Comment(Base):
    __tablename__ = "comments"
    id = Column(Integer, primary_key=True)
    body = Column(Text)


class Like(Base):
    __tablename__ = "likes"
    id = Column(Integer, primary_key=True)
    comment_id = Column(ForeignKey("comments.id"))


Comment.__table__.create(engine)
with Session(engine) as session:
    session.add(Comment(body="old"))
    session.commit()
    session.execute(text("CREATE EXTENSION snowflake_migrate"))
    session.execute(text("CALL snowflake.adopt('comments', 5, rewrite => true)"))
    comment = Comment(body="new")
    session.add(comment)
    session.commit()
    equal([session.get(Comment, 1).body, session.get(Comment, comment.id).body], ["old", "new"],
          "an adopted table: psycopg finds old and new rows")
    Like.__table__.create(engine)
    equal(session.scalar(text("SELECT atttypid::regtype::text FROM pg_attribute WHERE attrelid = 'likes'::regclass"
                              "   AND attname = 'comment_id'")), "integer", "trap: a model that says Integer makes integer references")
done()
