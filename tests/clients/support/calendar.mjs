// Bookings: the sample tool that needs approval.

/** An hour of a day, some days after tomorrow. */
export function at(day, hour) {
  const date = new Date(Date.now() + (day + 1) * 86_400_000);
  return `${date.toISOString().slice(0, 10)}T${hour}:00:00Z`;
}

/** Tea at ten on a day, as the tool takes it. */
export function tea(day) {
  return { title: 'Tea', start_time: at(day, 10), end_time: at(day, 11), attendees: ['ann@example.com'] };
}

/** The hour of that tea, as the tool that looks for free time takes it. */
export function teatime(day) {
  return { start_date: at(day, 10), end_date: at(day, 11) };
}

/** Tells the puppet to book tea at ten on a day. */
export function booking(day) {
  return `call calendar_create_event ${JSON.stringify(tea(day))}`;
}

/** Asks the puppet to look whether something is booked then. */
export function looking(day) {
  return `call calendar_get_availability ${JSON.stringify(teatime(day))}`;
}
