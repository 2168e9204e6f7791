// Jars: postgresql eclipselink eclipselink-jpa-2.1-spec geronimo-jta-1.2-spec
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Vector;
import java.util.stream.Collectors;
import javax.persistence.Entity;
import javax.persistence.EntityManager;
import javax.persistence.EntityManagerFactory;
import javax.persistence.GeneratedValue;
import javax.persistence.GenerationType;
import javax.persistence.Id;
import javax.persistence.Persistence;
import javax.persistence.PersistenceException;
import javax.persistence.SequenceGenerator;
import javax.persistence.Table;
import org.eclipse.persistence.config.SessionCustomizer;
import org.eclipse.persistence.internal.databaseaccess.Accessor;
import org.eclipse.persistence.internal.sessions.AbstractRecord;
import org.eclipse.persistence.internal.sessions.AbstractSession;
import org.eclipse.persistence.queries.SQLCall;
import org.eclipse.persistence.sequencing.Sequence;
import org.eclipse.persistence.sessions.Session;

/** EclipseLink: IDENTITY asks lastval(), which knows no ids; a sequence of one's own takes them from next_ids(). */
final class Eclipselink {
    @Entity(name = "Photo")
    @Table(name = "photos")
    static class Photo {
        @Id
        @GeneratedValue(strategy = GenerationType.IDENTITY)
        Long id;
        String caption;
    }

    @Entity(name = "Upload")
    @Table(name = "uploads")
    static class Upload {
        @Id
        @GeneratedValue(generator = "snowflake")
        Long id;
        String caption;
    }

    @Entity(name = "Comment")
    @Table(name = "comments")
    static class Comment {
        @Id
        @GeneratedValue(strategy = GenerationType.SEQUENCE, generator = "comments_id_seq")
        @SequenceGenerator(name = "comments_id_seq", allocationSize = 1)
        Integer id;
        String body;
    }

    /** Ids of shard 5, as many at a time as EclipseLink asks for. */
    public static class NextIds extends Sequence implements SessionCustomizer {
        static int calls;

        public NextIds() {
            super("snowflake", 100);
        }

        @Override
        public void customize(Session session) {
            session.getLogin().addSequence(this);
        }

        @Override
        public Vector<Object> getGeneratedVector(Accessor accessor, AbstractSession session, String name, int size) {
            calls++;
            Vector<Object> ids = new Vector<>(size);
            for (Object row : session.executeSelectingCall(new SQLCall("SELECT unnest(snowflake.next_ids(5, " + size + ")) AS id"))) {
                ids.add(((AbstractRecord) row).get("id"));
            }
            return ids;
        }

        @Override
        public Object getGeneratedValue(Accessor accessor, AbstractSession session, String name) {
            return getGeneratedVector(accessor, session, name, 1).get(0);
        }

        @Override
        public boolean shouldAcquireValueAfterInsert() {
            return false;
        }

        @Override
        public boolean shouldUseTransaction() {
            return false;
        }

        @Override
        public boolean shouldUsePreallocation() {
            return true;
        }

        @Override
        public void onConnect() {}

        @Override
        public void onDisconnect() {}
    }

    public static void main(String[] arguments) {
        EntityManagerFactory factory = Persistence.createEntityManagerFactory("photos", Map.of(
                "javax.persistence.jdbc.url", Tap.url(),
                "javax.persistence.jdbc.driver", "org.postgresql.Driver",
                "eclipselink.session.customizer", NextIds.class.getName(),
                "eclipselink.weaving", "false",
                "eclipselink.logging.level", "OFF"));
        EntityManager manager = factory.createEntityManager();
        manager.getTransaction().begin();
        manager.createNativeQuery("CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT snowflake.next_id(5), caption text)").executeUpdate();
        manager.createNativeQuery("CREATE TABLE uploads (id bigint PRIMARY KEY DEFAULT snowflake.next_id(5), caption text)").executeUpdate();
        List<Upload> uploads = new ArrayList<>();
        for (int row = 0; row < 250; row++) {
            Upload upload = new Upload();
            upload.caption = "many";
            manager.persist(upload);
            uploads.add(upload);
        }
        manager.getTransaction().commit();
        List<?> rows = manager.createNativeQuery("SELECT CAST(id AS text) FROM uploads ORDER BY id").getResultList();
        Tap.equal(uploads.stream().map(upload -> upload.id.toString()).sorted().collect(Collectors.toList()),
                rows.stream().map(row -> row instanceof Object[] ? ((Object[]) row)[0] : row).map(Object::toString).collect(Collectors.toList()),
                "a sequence over next_ids()");
        Tap.equal(NextIds.calls, 3, "three calls for 250 rows");
        manager.clear();
        Tap.equal(manager.find(Upload.class, uploads.get(0).id).caption, "many", "find() by id");

        manager.getTransaction().begin();
        try {
            manager.persist(new Photo());
            manager.flush();
            Tap.equal("no error", "an error", "trap: IDENTITY asks lastval()");
        } catch (PersistenceException error) {
            Tap.equal(error.getMessage().contains("lastval is not yet defined"), true, "trap: IDENTITY asks lastval()");
        }
        manager.getTransaction().rollback();

        manager.getTransaction().begin();
        manager.createNativeQuery("CREATE TABLE logins (id serial, who text)").executeUpdate();
        manager.createNativeQuery("INSERT INTO logins (who) VALUES ('me')").executeUpdate();
        Photo photo = new Photo();
        manager.persist(photo);
        manager.flush();
        Tap.equal(photo.id, 1L, "trap: and is told the other table's number after an insert there");
        manager.getTransaction().rollback();

        // Tests adopt() on an application whose key had a default nextval(). The model of the application stays
        // unchanged.
        manager.getTransaction().begin();
        manager.createNativeQuery("CREATE TABLE comments (id serial PRIMARY KEY, body text)").executeUpdate();
        manager.createNativeQuery("CREATE EXTENSION snowflake_migrate").executeUpdate();
        manager.createNativeQuery("CALL snowflake.adopt('comments', 5, rewrite => true)").executeUpdate();
        Comment comment = new Comment();
        manager.persist(comment);
        manager.flush();
        Tap.equal(comment.id, 1, "trap: an adopted table, and SEQUENCE continues to count");
        manager.getTransaction().rollback();
        Tap.done();
    }
}
